//! A safetensors file: a length, a table in JSON, and the numbers. Nothing that the table says is believed unchecked.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::error::EmbedError;

/// The longest table that is read.
const TABLE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// An open file of tensors.
pub(crate) struct Tensors {
    path: PathBuf,
    file: File,
    table: FxHashMap<String, Tensor>,
    /// Where the numbers begin, and how many bytes of them there are.
    begin: u64,
    bytes: u64,
}

/// A line of the table.
#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

/// A tensor whose place in the file was checked.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Where it begins in the file.
    offset: u64,
    /// How many numbers it has.
    pub(crate) count: usize,
}

impl Tensors {
    pub(crate) fn open(path: &Path) -> Result<Tensors, EmbedError> {
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
        // It fits: it was compared with a limit far below the size of memory.
        let mut table = vec![0; length as usize];
        file.read_exact_at(&mut table, 8).map_err(&refused)?;
        let unread = |error: serde_json::Error| EmbedError::broken(path, format!("its table: {error}"));
        let values: FxHashMap<String, Value> = serde_json::from_slice(&table).map_err(unread)?;
        let mut table = FxHashMap::default();
        for (name, value) in values.into_iter().filter(|(name, _)| name != "__metadata__") {
            let tensor: Tensor = serde_json::from_value(value).map_err(unread)?;
            table.insert(name, tensor);
        }
        Ok(Tensors { path: path.to_owned(), file, table, begin, bytes: bytes - begin })
    }

    /// How the names of the encoder's tensors begin: some files hold it as a part of something larger.
    pub(crate) fn beginning(&self, name: &str) -> String {
        let beginning = self.table.keys().filter_map(|key| key.strip_suffix(name)).min();
        beginning.unwrap_or_default().to_owned()
    }

    /// How many rows a table of rows this wide has.
    pub(crate) fn rows(&self, name: &str, width: usize) -> Result<usize, EmbedError> {
        match self.tensor(name)?.shape[..] {
            [rows, found] if found == width => Ok(rows),
            ref shape => Err(self.broken(format!("{name} has the shape {shape:?}, not rows of {width}"))),
        }
    }

    /// The place of a tensor that must have this shape.
    pub(crate) fn place(&self, name: &str, shape: &[usize]) -> Result<Place, EmbedError> {
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
                Ok(Place { offset: self.begin + from, count })
            }
            _ => Err(self.broken(format!(
                "{name} is said to be in bytes {from} to {to} of {}, which cannot be",
                self.bytes
            ))),
        }
    }

    /// A whole tensor.
    pub(crate) fn read(&self, place: &Place) -> Result<Vec<f32>, EmbedError> {
        let mut numbers = vec![0.0; place.count];
        self.fill(place, 0, &mut numbers)?;
        Ok(numbers)
    }

    /// A part of a tensor, from its `first` number on. The caller stays within the tensor.
    pub(crate) fn fill(&self, place: &Place, first: usize, numbers: &mut [f32]) -> Result<(), EmbedError> {
        let offset = place.offset + 4 * first as u64;
        let bytes = bytemuck::cast_slice_mut(numbers);
        self.file.read_exact_at(bytes, offset).map_err(EmbedError::read(&self.path))?;
        // The file has the smaller byte first; where the machine does, too, this does nothing.
        for number in numbers {
            *number = f32::from_bits(u32::from_le(number.to_bits()));
        }
        Ok(())
    }

    fn tensor(&self, name: &str) -> Result<&Tensor, EmbedError> {
        self.table.get(name).ok_or_else(|| self.broken(format!("it has no {name}")))
    }

    fn broken(&self, what: String) -> EmbedError {
        EmbedError::broken(&self.path, what)
    }
}
