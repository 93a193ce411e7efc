//! A git server over smart HTTP: `git http-backend` behind a small web server, with bad manners on request.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

use super::TestEnv;

/// How the server treats what comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manners {
    /// As it should be.
    Serve,
    /// Asks everybody for a password that nobody has.
    AskForPassword,
    /// Takes requests and never answers.
    Hang,
    /// Lets the next pushes land, then answers with an error: the reply is lost. Counts down, then serves.
    LosePushReplies(usize),
    /// Lets pushes land, then never answers.
    HangAfterPush,
    /// Lets pushes land this much later, whether or not the client is still there.
    DelayPushes(Duration),
}

/// A server of the repositories below one folder.
pub struct HttpRemote {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    address: SocketAddr,
}

struct Shared {
    server: Server,
    root: PathBuf,
    path: std::ffi::OsString,
    home: PathBuf,
    manners: Mutex<Manners>,
    /// Requests that will never be answered; dropping one would answer it.
    kept: Mutex<Vec<Request>>,
    pushes: AtomicUsize,
}

impl HttpRemote {
    /// Serves the repositories in the folder of `env`.
    pub fn start(env: &TestEnv) -> Self {
        let server = Server::http("127.0.0.1:0").expect("a free port");
        let address = server.server_addr().to_ip().expect("an address of the internet family");
        let shared = Arc::new(Shared {
            server,
            root: env.root().to_owned(),
            path: env.environment().raw("PATH").unwrap_or_default().to_owned(),
            home: env.path("home"),
            manners: Mutex::new(Manners::Serve),
            kept: Mutex::default(),
            pushes: AtomicUsize::new(0),
        });
        const WORKERS: usize = 16;
        let threads = (0..WORKERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.work())
            })
            .collect();
        Self { shared, threads, address }
    }

    /// Returns the URL of a repository below the served folder.
    pub fn url(&self, repository: &Path) -> String {
        let name = repository.strip_prefix(&self.shared.root).expect("the repository lies in the served folder");
        format!("http://{}/{}", self.address, name.display())
    }

    /// Changes how the server treats what comes in from now on.
    pub fn behave(&self, manners: Manners) {
        *self.shared.manners.lock().unwrap_or_else(PoisonError::into_inner) = manners;
    }

    /// Returns how many pushes were let through to git.
    pub fn pushes(&self) -> usize {
        self.shared.pushes.load(Ordering::SeqCst)
    }
}

impl Drop for HttpRemote {
    fn drop(&mut self) {
        for _ in &self.threads {
            self.shared.server.unblock();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Ok(request) = self.server.recv() {
            self.answer(request);
        }
    }

    fn answer(&self, mut request: Request) {
        let is_push = *request.method() == Method::Post && request.url().contains("git-receive-pack");
        let manners = *self.manners.lock().unwrap_or_else(PoisonError::into_inner);
        match manners {
            Manners::AskForPassword => {
                let ask = header("WWW-Authenticate", "Basic realm=\"team\"");
                // The client may have gone away; that is its affair.
                let _ = request.respond(Response::empty(401).with_header(ask));
                return;
            }
            Manners::Hang => return self.keep(request),
            Manners::DelayPushes(delay) if is_push => std::thread::sleep(delay),
            Manners::Serve | Manners::LosePushReplies(_) | Manners::HangAfterPush | Manners::DelayPushes(_) => {}
        }
        let answer = self.run_backend(&mut request);
        if is_push {
            self.pushes.fetch_add(1, Ordering::SeqCst);
        }
        match manners {
            Manners::HangAfterPush if is_push => self.keep(request),
            Manners::LosePushReplies(_) if is_push && self.one_less() => {
                let _ = request.respond(Response::empty(502));
            }
            _ => {
                let _ = request.respond(parse_cgi(&answer));
            }
        }
    }

    /// Counts one lost reply down; tells whether there was one left to lose.
    fn one_less(&self) -> bool {
        let mut manners = self.manners.lock().unwrap_or_else(PoisonError::into_inner);
        match *manners {
            Manners::LosePushReplies(left @ 1..) => {
                *manners = Manners::LosePushReplies(left - 1);
                true
            }
            _ => false,
        }
    }

    fn keep(&self, request: Request) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    fn run_backend(&self, request: &mut Request) -> Vec<u8> {
        let mut body = Vec::new();
        let _ = request.as_reader().read_to_end(&mut body);
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        let mut command = Command::new("git");
        command.env_clear().arg("http-backend").current_dir(&self.root);
        command.env("PATH", &self.path).env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_PROJECT_ROOT", &self.root).env("GIT_HTTP_EXPORT_ALL", "1");
        command.env("PATH_INFO", path).env("QUERY_STRING", query);
        command.env("REQUEST_METHOD", request.method().to_string());
        command.env("REMOTE_ADDR", "127.0.0.1").env("CONTENT_LENGTH", body.len().to_string());
        for (name, variable) in [
            ("Content-Type", "CONTENT_TYPE"),
            ("Content-Encoding", "HTTP_CONTENT_ENCODING"),
            ("Git-Protocol", "GIT_PROTOCOL"),
        ] {
            if let Some(value) = value_of(request, name) {
                command.env(variable, value);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("git http-backend runs");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let feeder = std::thread::spawn(move || {
            // It may answer without reading everything.
            let _ = stdin.write_all(&body);
        });
        let output = child.wait_with_output().expect("git http-backend ends");
        let _ = feeder.join();
        output.stdout
    }
}

fn value_of(request: &Request, name: &'static str) -> Option<String> {
    let header = request.headers().iter().find(|header| header.field.equiv(name))?;
    Some(header.value.as_str().to_owned())
}

fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name.as_bytes(), value.as_bytes()).expect("a plain header")
}

/// Turns what a CGI program said into a response.
fn parse_cgi(answer: &[u8]) -> Response<std::io::Cursor<Vec<u8>>> {
    const BLANK: &[u8] = b"\r\n\r\n";
    let Some(end) = answer.windows(BLANK.len()).position(|window| window == BLANK) else {
        return Response::from_string("git http-backend said nothing").with_status_code(500);
    };
    let mut response = Response::from_data(answer[end + BLANK.len()..].to_vec());
    for line in String::from_utf8_lossy(&answer[..end]).lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(500);
            response = response.with_status_code(StatusCode(code));
        } else {
            response.add_header(header(name, value));
        }
    }
    response
}
