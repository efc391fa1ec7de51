//! Reader of safetensors files: a length, a JSON table, and the numbers. Everything in the table is
//! validated.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::embeddings::error::EmbedError;

/// Maximum length of the table.
const TABLE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// An open safetensors file.
pub(crate) struct TensorFile {
    path: PathBuf,
    file: File,
    table: FxHashMap<String, TensorInfo>,
    /// Offset and length of the numbers.
    begin: u64,
    bytes: u64,
}

/// Table entry of a tensor.
#[derive(Deserialize)]
struct TensorInfo {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

/// A tensor whose position was validated.
#[derive(Clone, Debug)]
pub(crate) struct TensorRange {
    /// Byte offset in the file.
    offset: u64,
    /// Number of elements.
    pub(crate) count: usize,
}

impl TensorFile {
    pub(crate) fn open(path: &Path) -> Result<TensorFile, EmbedError> {
        let refused = EmbedError::read(path);
        let file = File::open(path).map_err(&refused)?;
        let bytes = file.metadata().map_err(&refused)?.len();
        let mut length = [0; 8];
        if bytes < length.len() as u64 {
            return Err(EmbedError::broken(path, "it ends before its table"));
        }
        file.read_exact_at(&mut length, 0).map_err(&refused)?;
        let length = u64::from_le_bytes(length);
        if length > TABLE_BYTES_MAX {
            return Err(EmbedError::broken(path, "its table has no sensible length"));
        }
        let begin = 8 + length;
        if begin > bytes {
            return Err(EmbedError::broken(path, "it ends within its table"));
        }
        // The limit above makes the conversion safe.
        let mut table = vec![0; length as usize];
        file.read_exact_at(&mut table, 8).map_err(&refused)?;
        let unread = |error: serde_json::Error| EmbedError::broken(path, format!("its table: {error}"));
        let values: FxHashMap<String, Value> = serde_json::from_slice(&table).map_err(unread)?;
        let mut table = FxHashMap::default();
        for (name, value) in values.into_iter().filter(|(name, _)| name != "__metadata__") {
            let tensor: TensorInfo = serde_json::from_value(value).map_err(unread)?;
            table.insert(name, tensor);
        }
        Ok(TensorFile { path: path.to_owned(), file, table, begin, bytes: bytes - begin })
    }

    /// Prefix of the encoder's tensor names; some files hold it as part of a larger model.
    pub(crate) fn name_prefix(&self, name: &str) -> String {
        let beginning = self.table.keys().filter_map(|key| key.strip_suffix(name)).min();
        beginning.unwrap_or_default().to_owned()
    }

    /// Number of rows of a matrix with this width.
    pub(crate) fn rows(&self, name: &str, width: usize) -> Result<usize, EmbedError> {
        match self.tensor(name)?.shape[..] {
            [rows, found] if found == width => Ok(rows),
            ref shape => Err(self.broken(format!("{name} has the shape {shape:?}, not rows of {width}"))),
        }
    }

    /// Locates a tensor and checks its shape.
    pub(crate) fn place(&self, name: &str, shape: &[usize]) -> Result<TensorRange, EmbedError> {
        let tensor = self.tensor(name)?;
        if tensor.dtype != "F32" {
            let dtype = &tensor.dtype;
            return Err(EmbedError::foreign(
                &self.path,
                format!("{name} is kept as {dtype}, and only F32 is read"),
            ));
        }
        if tensor.shape != shape {
            let found = &tensor.shape;
            return Err(self.broken(format!("{name} has the shape {found:?}, not {shape:?}")));
        }
        let [from, to] = tensor.data_offsets;
        let count = shape.iter().try_fold(1_usize, |count, size| count.checked_mul(*size));
        let wanted = count.and_then(|count| (count as u64).checked_mul(4));
        match (count, to.checked_sub(from)) {
            (Some(count), Some(bytes)) if wanted == Some(bytes) && to <= self.bytes => {
                Ok(TensorRange { offset: self.begin + from, count })
            }
            _ => Err(self.broken(format!(
                "{name} is said to be in bytes {from} to {to} of {}, which cannot be",
                self.bytes
            ))),
        }
    }

    /// Reads a whole tensor.
    pub(crate) fn read(&self, place: &TensorRange) -> Result<Vec<f32>, EmbedError> {
        let mut numbers = vec![0.0; place.count];
        self.fill(place, 0, &mut numbers)?;
        Ok(numbers)
    }

    /// Reads part of a tensor, starting with element `first`. The caller stays within the tensor.
    pub(crate) fn fill(
        &self,
        place: &TensorRange,
        first: usize,
        numbers: &mut [f32],
    ) -> Result<(), EmbedError> {
        let offset = place.offset + 4 * first as u64;
        let bytes = bytemuck::cast_slice_mut(numbers);
        self.file.read_exact_at(bytes, offset).map_err(EmbedError::read(&self.path))?;
        // The file is little-endian; a no-op on such machines.
        for number in numbers {
            *number = f32::from_bits(u32::from_le(number.to_bits()));
        }
        Ok(())
    }

    fn tensor(&self, name: &str) -> Result<&TensorInfo, EmbedError> {
        self.table.get(name).ok_or_else(|| self.broken(format!("it has no {name}")))
    }

    fn broken(&self, what: String) -> EmbedError {
        EmbedError::broken(&self.path, what)
    }
}
