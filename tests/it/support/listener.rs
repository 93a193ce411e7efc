//! A server that accepts connections and never says a word.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Accepts, never answers.
pub struct HangingListener {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HangingListener {
    /// Starts to listen on a free port of this machine.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let closing = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&closing);
        let thread = std::thread::spawn(move || {
            let mut kept: Vec<TcpStream> = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                if seen.load(Ordering::SeqCst) {
                    break;
                }
                kept.push(stream);
            }
        });
        Self { address, closing, thread: Some(thread) }
    }

    /// Returns the URL of a repository that this server pretends to have.
    pub fn url(&self) -> String {
        format!("http://{}/repository.git", self.address)
    }
}

impl Drop for HangingListener {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        // Wakes the thread; when that fails it is gone already.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the URL of a repository on a port where nobody listens.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}/repository.git", listener.local_addr().expect("a bound listener has an address"))
}
