//! The repository name a clone proposes for a store that has none yet (design.md section 5).

use std::path::Path;

use crate::domain::ids::is_repo;
use crate::git::Repository;

/// Returns `OWNER/REPO` of the clone's remote, else `local/<folder>`. Always a repository name.
#[must_use]
pub fn derive(repository: &Repository) -> String {
    remote_url(repository).as_deref().and_then(from_url).unwrap_or_else(|| from_folder(repository.common_dir()))
}

fn remote_url(repository: &Repository) -> Option<String> {
    let shared = repository.config("agent-coord.remote");
    let names = shared.iter().map(String::as_str).chain(["origin"]);
    names.into_iter().find_map(|name| repository.config(&format!("remote.{name}.url")))
}

/// Returns the last two parts of a URL or an scp-like address of a hosted repository.
fn from_url(url: &str) -> Option<String> {
    let path = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?.1,
        // `host:owner/repo`; a plain path names no owner.
        None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?.1,
    };
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
    let (name, owner) = (parts.next()?, parts.next()?);
    Some(format!("{owner}/{name}")).filter(|repo| is_repo(repo) && !repo.contains(".."))
}

fn from_folder(common_dir: &Path) -> String {
    let hidden = common_dir.file_name().is_some_and(|name| name == ".git");
    let folder = if hidden { common_dir.parent().unwrap_or(common_dir) } else { common_dir };
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_suffix(".git").unwrap_or(&name);
    let kept =
        |character: char| if character.is_ascii_alphanumeric() || "_-.".contains(character) { character } else { '-' };
    let clean: String = name.chars().map(kept).collect();
    let clean = clean.replace("..", "-");
    let clean = clean.trim_matches(|character| "-.".contains(character));
    format!("local/{}", if clean.is_empty() { "repository" } else { clean })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_and_a_name_are_read_from_every_kind_of_address() {
        for url in [
            "https://github.com/shakacode/hichee.git",
            "https://user:secret@github.com/shakacode/hichee/",
            "ssh://git@github.com:22/shakacode/hichee",
            "git@github.com:shakacode/hichee.git",
            "https://host/group/shakacode/hichee",
        ] {
            assert_eq!(from_url(url).as_deref(), Some("shakacode/hichee"), "{url}");
        }
    }

    #[test]
    fn addresses_without_an_owner_name_nothing() {
        for url in ["/srv/git/x.git", "../x.git", "file:///srv/git/x.git", "https://host/x.git", "host:x", "./a:b/c"] {
            assert_eq!(from_url(url), None, "{url}");
        }
    }

    #[test]
    fn a_folder_becomes_a_repository_name_whatever_it_is_called() {
        for (folder, repo) in [
            ("/home/me/project/.git", "local/project"),
            ("/srv/project.git", "local/project"),
            ("/home/me/My Project (2)/.git", "local/My-Project--2"),
            ("/home/me/a..b/.git", "local/a-b"),
            ("/.git", "local/repository"),
            ("/é/.git", "local/repository"),
        ] {
            let name = from_folder(Path::new(folder));
            assert_eq!(name, repo);
            assert!(is_repo(&name));
        }
    }
}
