// SPDX-License-Identifier: GPL-2.0

//! Finds the preload library and writes the linker's list of libraries.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const NAME: &str = "libsmc_preload.so";
const SYSTEM_FOLDER: &str = "/usr/lib";

/// Finds the library beside smc_run, in `../lib`, or in `/usr/lib`.
///
/// # Errors
///
/// A sentence for the user when it is in none of them or its path cannot be preloaded.
pub(crate) fn find() -> Result<PathBuf, String> {
    let own_folder = std::env::current_exe()
        .ok()
        .and_then(|file| file.parent().map(Path::to_owned));
    let file = candidates(own_folder.as_deref())
        .into_iter()
        .find(|file| file.is_file())
        .ok_or_else(|| {
            format!("{NAME} is missing: put it beside smc_run, in ../lib or in {SYSTEM_FOLDER}.")
        })?;
    if file
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|&byte| is_separator(byte))
    {
        return Err(format!(
            "the linker cannot preload {}: install it in a folder without spaces and colons.",
            file.display()
        ));
    }
    Ok(file)
}

fn candidates(own_folder: Option<&Path>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Some(folder) = own_folder {
        files.push(folder.join(NAME));
        if let Some(above) = folder.parent() {
            files.push(above.join("lib").join(NAME));
        }
    }
    files.push(Path::new(SYSTEM_FOLDER).join(NAME));
    files
}

/// Appends `library` to the value of `LD_PRELOAD`, unless it is there already.
pub(crate) fn append(before: Option<&OsStr>, library: &Path) -> OsString {
    let library = library.as_os_str();
    let before = before.unwrap_or_default();
    let is_listed = before
        .as_bytes()
        .split(|&byte| is_separator(byte))
        .any(|entry| entry == library.as_bytes());
    if is_listed {
        return before.to_owned();
    }
    let mut list = before.to_owned();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(library);
    list
}

/// The linker splits the list at colons and spaces.
fn is_separator(byte: u8) -> bool {
    byte == b':' || byte == b' '
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_are_tried_from_near_to_far() {
        assert_eq!(
            candidates(Some(Path::new("/opt/smc/bin"))),
            [
                Path::new("/opt/smc/bin/libsmc_preload.so"),
                Path::new("/opt/smc/lib/libsmc_preload.so"),
                Path::new("/usr/lib/libsmc_preload.so"),
            ]
        );
        assert_eq!(candidates(None), [Path::new("/usr/lib/libsmc_preload.so")]);
    }

    #[test]
    fn other_libraries_keep_their_place() {
        let ours = Path::new("/l/libsmc_preload.so");
        let list = |before: &str| append(Some(OsStr::new(before)), ours);
        assert_eq!(append(None, ours), "/l/libsmc_preload.so");
        assert_eq!(list(""), "/l/libsmc_preload.so");
        assert_eq!(list("/x.so"), "/x.so:/l/libsmc_preload.so");
        assert_eq!(list("/x.so /y.so"), "/x.so /y.so:/l/libsmc_preload.so");
    }

    #[test]
    fn the_library_is_listed_once() {
        let ours = Path::new("/l/libsmc_preload.so");
        for before in [
            "/l/libsmc_preload.so",
            "/x.so:/l/libsmc_preload.so",
            "/l/libsmc_preload.so /x.so",
        ] {
            assert_eq!(append(Some(OsStr::new(before)), ours), before);
        }
    }
}
