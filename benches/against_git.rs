//! Compares commands with bare git in one run.

fn main() {}
