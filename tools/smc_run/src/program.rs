// SPDX-License-Identifier: GPL-2.0

//! Finds the program to run and tells why its sockets cannot be replaced, if so.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{self, FsFlags};
use nix::unistd::{self, AccessFlags, Gid, Uid};

use crate::elf::{self, Elf, Image};

/// Scripts may name scripts; the kernel follows five of them.
const MAX_INTERPRETERS: u32 = 5;
/// Where `execvp` looks when there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Machine number of the programs that the preload library is built for.
const OWN_MACHINE: u16 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else if cfg!(target_arch = "s390x") {
    22
} else {
    21
};

/// Why a program keeps its TCP sockets although it is run by `smc_run`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// No dynamic linker, so nothing can be preloaded.
    Static,
    /// Go programs make system calls without the C library.
    Go,
    /// The linker ignores preloading for programs that change the user.
    Setuid,
    /// As [`Obstacle::Setuid`], for the group.
    Setgid,
    /// As [`Obstacle::Setuid`], for programs that gain capabilities.
    Capabilities,
    /// Built for another processor than the preload library.
    OtherMachine,
    /// Uses another C library than the preload library; loading it would stop the program.
    OtherLibc(OsString),
}

impl Obstacle {
    /// Whether the preload library would do harm, so that it must be left out.
    pub(crate) fn forbids_preload(&self) -> bool {
        matches!(self, Obstacle::OtherLibc(_))
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Static => out.write_str("is statically linked"),
            Obstacle::Go => out.write_str("is a Go program, which makes its system calls itself"),
            Obstacle::Setuid => out.write_str("is a setuid program"),
            Obstacle::Setgid => out.write_str("is a setgid program"),
            Obstacle::Capabilities => out.write_str("has file capabilities"),
            Obstacle::OtherMachine => out.write_str("is built for another processor type"),
            Obstacle::OtherLibc(linker) => {
                write!(out, "uses another C library ({})", linker.to_string_lossy())
            }
        }
    }
}

/// Finds `name` as `execvp` does: in `PATH` unless it has a slash.
///
/// Returns `None` when there is no such file; the exec call then tells the error.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    if name.is_empty() {
        return None;
    }
    std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH)))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file() && unistd::access(file, AccessFlags::X_OK).is_ok())
}

/// Tells what keeps the program from using the preload library.
///
/// # Errors
///
/// Those of reading the file, which can be executable without being readable.
pub(crate) fn obstacle(program: &Path) -> io::Result<Option<Obstacle>> {
    let mut program = program.to_owned();
    for _ in 0..MAX_INTERPRETERS {
        let metadata = fs::metadata(&program)?;
        let privilege = || gained_privilege(&program, &metadata);
        // Set-user bits and capabilities of a script count for nothing; an unreadable program
        // can still be judged by them.
        let mut file = match File::open(&program) {
            Ok(file) => file,
            Err(error) => return privilege().map_or(Err(error), |found| Ok(Some(found))),
        };
        match elf::inspect(&mut file)? {
            Image::Elf(elf) => return Ok(privilege().or_else(|| unsuitable(&elf))),
            Image::Script(interpreter) => program = PathBuf::from(interpreter),
            Image::Other => return Ok(None),
        }
    }
    Ok(None)
}

/// Judges a program by its file format.
fn unsuitable(elf: &Elf) -> Option<Obstacle> {
    if elf.is_go {
        return Some(Obstacle::Go);
    }
    let Some(linker) = &elf.interpreter else {
        return Some(Obstacle::Static);
    };
    if !elf.is_64_little && cfg!(all(target_pointer_width = "64", target_endian = "little"))
        || elf.machine != OWN_MACHINE
    {
        return Some(Obstacle::OtherMachine);
    }
    let name = Path::new(linker).file_name().unwrap_or(linker);
    let is_glibc = name.as_bytes().starts_with(b"ld-linux") || name.as_bytes().starts_with(b"ld64");
    (!is_glibc).then(|| Obstacle::OtherLibc(linker.clone()))
}

/// Judges a program by the rights that it gains, which make the linker ignore `LD_PRELOAD`.
fn gained_privilege(program: &Path, metadata: &Metadata) -> Option<Obstacle> {
    let ignored = statvfs::statvfs(program).is_ok_and(|fs| fs.flags().contains(FsFlags::ST_NOSUID));
    if ignored {
        return None;
    }
    let mode = metadata.mode();
    if mode & libc::S_ISUID != 0 && metadata.uid() != Uid::current().as_raw() {
        return Some(Obstacle::Setuid);
    }
    let set_group = libc::S_ISGID | libc::S_IXGRP;
    if mode & set_group == set_group && metadata.gid() != Gid::current().as_raw() {
        return Some(Obstacle::Setgid);
    }
    (!Uid::current().is_root() && has_capabilities(program)).then_some(Obstacle::Capabilities)
}

/// Whether the file carries capabilities. The attribute cannot be hidden from its reader, and a
/// file system without attributes has none.
fn has_capabilities(program: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(program.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: both names are NUL-terminated; a size of zero asks for the length only.
    let length = unsafe {
        libc::getxattr(
            path.as_ptr(),
            c"security.capability".as_ptr(),
            std::ptr::null_mut(),
            0,
        )
    };
    length > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dynamic(linker: &str) -> Elf {
        Elf {
            is_64_little: cfg!(all(target_pointer_width = "64", target_endian = "little")),
            machine: OWN_MACHINE,
            interpreter: Some(linker.into()),
            is_go: false,
        }
    }

    #[test]
    fn a_dynamic_program_of_this_machine_is_suitable() {
        assert_eq!(unsuitable(&dynamic("/lib64/ld-linux-x86-64.so.2")), None);
        assert_eq!(unsuitable(&dynamic("/lib/ld-linux-aarch64.so.1")), None);
    }

    #[test]
    fn unsuitable_programs_are_told_apart() {
        let glibc = "/lib64/ld-linux-x86-64.so.2";
        let mut program = dynamic(glibc);
        program.interpreter = None;
        assert_eq!(unsuitable(&program), Some(Obstacle::Static));
        program.is_go = true;
        assert_eq!(unsuitable(&program), Some(Obstacle::Go));
        let mut program = dynamic(glibc);
        program.is_go = true;
        assert_eq!(unsuitable(&program), Some(Obstacle::Go));
        let mut program = dynamic(glibc);
        program.machine = 3;
        assert_eq!(unsuitable(&program), Some(Obstacle::OtherMachine));
        let musl = "/lib/ld-musl-x86_64.so.1";
        let found = unsuitable(&dynamic(musl));
        assert_eq!(found, Some(Obstacle::OtherLibc(musl.into())));
        assert!(found.is_some_and(|obstacle| obstacle.forbids_preload()));
    }

    #[test]
    fn programs_are_found_as_exec_finds_them() {
        let path = Some(OsStr::new("/nonexistent:/bin"));
        assert_eq!(find(OsStr::new("sh"), path), Some("/bin/sh".into()));
        assert_eq!(find(OsStr::new("./sh"), path), Some("./sh".into()));
        assert_eq!(find(OsStr::new("no-such-program"), path), None);
        assert_eq!(find(OsStr::new(""), path), None);
        assert_eq!(find(OsStr::new("sh"), None), Some("/bin/sh".into()));
    }
}
