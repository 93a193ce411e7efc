//! From a selection to a backend: the only file that names them all.
