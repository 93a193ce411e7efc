//! worktree
