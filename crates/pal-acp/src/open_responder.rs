//! Responder of the requests that open a session.

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{LoadSessionResponse, NewSessionResponse, ResumeSessionResponse};

/// Responder of the request that opens a session.
pub(crate) enum OpenResponder {
    New(Responder<NewSessionResponse>),
    Load(Responder<LoadSessionResponse>),
    Resume(Responder<ResumeSessionResponse>),
}

impl OpenResponder {
    pub(crate) fn refuse(self, error: Error) {
        // The client may be gone.
        let _ = match self {
            OpenResponder::New(responder) => responder.respond_with_error(error),
            OpenResponder::Load(responder) => responder.respond_with_error(error),
            OpenResponder::Resume(responder) => responder.respond_with_error(error),
        };
    }
}
