//! hooks
