//! The one HTTP driver over the dialects: keys, retries, streams, timeouts.
