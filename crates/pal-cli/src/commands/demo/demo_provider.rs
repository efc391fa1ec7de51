//! Provider of the demo: the simulator on loopback, with a scripted model.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_model::ModelCatalog;
use pal_sim::{
    ExtractiveModel, ModelOutput, ModelPrompt, ScriptedModel, SimSettings, SimulatedModel, SimulatedProvider,
};
use pal_sim_server::{ClockSpeed, SimServerOptions, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::failure::Failure;

/// A simulator that runs until this is dropped.
pub(super) struct DemoProvider {
    /// Keeps its threads alive.
    _runtime: Runtime,
    address: SocketAddr,
    record: PathBuf,
}

/// Follows the script; answers summary requests with an extract of the conversation.
struct DemoModel(ScriptedModel);

impl SimulatedModel for DemoModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        if ExtractiveModel::is_directive(ask) { ExtractiveModel.answer(ask) } else { self.0.answer(ask) }
    }
}

impl DemoProvider {
    /// Starts the simulator on a free port. Every exchange is recorded in `record`.
    pub(super) fn start(script: &str, cards: &ModelCatalog, record: &Path) -> Result<DemoProvider, Failure> {
        let script = ScriptedModel::parse(script)
            .map_err(|error| Failure::new(format!("the script of the demo: {error}")))?;
        let settings = SimSettings { cards: cards.clone(), ..SimSettings::plain() };
        let simulator = SimulatedProvider::new(settings, Box::new(DemoModel(script)));
        let failed = |error: std::io::Error| Failure::new(format!("the simulator: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let options = SimServerOptions {
            // The demo shows costs as a provider would cause them; its sessions are removed.
            announces: false,
            speed: ClockSpeed::Virtual,
            record: Some(record.to_owned()),
            notice: Box::new(|_| {}),
        };
        runtime.spawn(serve(listener, simulator, options, std::future::pending()));
        Ok(DemoProvider { _runtime: runtime, address, record: record.to_owned() })
    }

    /// Returns the base URL.
    pub(super) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Advances its clock.
    pub(super) fn advance(&self, by: Duration) -> Result<(), Failure> {
        let body = format!("{{\"advance_seconds\": {}}}", by.as_secs());
        let request = format!(
            "POST /sim/clock HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let mut answer = String::new();
        let mut exchange = || -> std::io::Result<()> {
            let mut stream = TcpStream::connect(self.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(request.as_bytes())?;
            stream.read_to_string(&mut answer).map(|_| ())
        };
        exchange().map_err(|error| Failure::new(format!("the simulator's clock: {error}")))?;
        match answer.starts_with("HTTP/1.1 200") {
            true => Ok(()),
            false => Err(Failure::new("the simulator's clock did not move")),
        }
    }

    /// Reads the bodies of all requests so far.
    pub(super) fn requests(&self) -> Result<Vec<String>, Failure> {
        let failed = |error: std::io::Error| Failure::of_file(&self.record, &error);
        let mut paths = Vec::new();
        for file in std::fs::read_dir(&self.record).map_err(failed)? {
            paths.push(file.map_err(failed)?.path());
        }
        paths.retain(|path| path.to_string_lossy().ends_with(".request.json"));
        paths.sort();
        paths.iter().map(|path| std::fs::read_to_string(path).map_err(failed)).collect()
    }
}
