// SPDX-License-Identifier: GPL-2.0

//! What can go wrong, in one plain sentence each.

use std::fmt;
use std::io;

/// Result of talking to the kernel.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the kernel could not be talked to, or what it answered.
#[derive(Debug)]
pub enum Error {
    /// The kernel has no such family: no SMC module is loaded.
    NoFamily(&'static str),
    /// The kernel answered with this error number.
    Kernel(i32),
    /// A system call failed.
    System(io::Error),
    /// The answer is no message of the expected form.
    Malformed(&'static str),
}

impl Error {
    /// The error number of the kernel's answer, if that is what it is.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Kernel(errno) => Some(*errno),
            _ => None,
        }
    }

    /// Whether events were lost because they came faster than they were read; more may follow.
    pub fn is_overrun(&self) -> bool {
        matches!(self, Self::System(error) if error.raw_os_error() == Some(libc::ENOBUFS))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFamily(_) => {
                f.write_str("the kernel has no SMC: load it with \"modprobe smc_rs\".")
            }
            Self::Kernel(libc::EPERM | libc::EACCES) => {
                f.write_str("only root may do this: run it again as root.")
            }
            Self::Kernel(libc::EOPNOTSUPP) => {
                f.write_str("the kernel's SMC does not know this command: use a newer module.")
            }
            Self::Kernel(errno) => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "the kernel refused the command: {error}.")
            }
            Self::System(error) => write!(f, "the kernel cannot be asked: {error}."),
            Self::Malformed(what) => write!(f, "the kernel's answer makes no sense: {what}."),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_told_from_other_failures() {
        let system = |errno| Error::System(io::Error::from_raw_os_error(errno));
        assert!(system(libc::ENOBUFS).is_overrun());
        assert!(!system(libc::EBADF).is_overrun());
        assert!(!Error::Kernel(libc::ENOBUFS).is_overrun());
    }

    #[test]
    fn errors_are_sentences_that_say_what_to_do() {
        for (error, hint) in [
            (Error::NoFamily("SMC_GEN_NETLINK"), "modprobe smc_rs"),
            (Error::Kernel(libc::EPERM), "as root"),
            (Error::Kernel(libc::EOPNOTSUPP), "newer"),
            (Error::Kernel(libc::ENOMEM), "refused the command"),
            (Error::Malformed("it is empty"), "makes no sense"),
        ] {
            let sentence = error.to_string();
            assert!(sentence.contains(hint), "{sentence}");
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }
}
