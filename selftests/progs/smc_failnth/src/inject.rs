// SPDX-License-Identifier: GPL-2.0

//! The kernel's fault injection, told to fail exactly one allocation.
//!
//! Two ways lead there. `/proc/thread-self/fail-nth` counts the allocations of one
//! thread, whatever kind they are of. The files of failslab and fail_page_alloc in
//! debugfs count those of everybody: that is how the work items and the bottom
//! halves of the module are reached. In both ways only allocations count whose stack
//! passes through the module's code.
//!
//! debugfs has an interval, not a number, and the count that is compared with it can
//! neither be read nor be set: [`Everybody`] keeps a copy of it. It starts with the
//! machine, so one machine is good for one run of this program.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const DEBUGFS: &str = "/sys/kernel/debug";
/// The text of a module ends at most this far behind its last symbol.
const LAST_SYMBOL: u64 = 16384;

/// What kind of allocation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Objects of the slab allocator.
    Slab,
    /// Pages.
    Page,
}

impl Kind {
    pub(crate) const ALL: [Kind; 2] = [Kind::Slab, Kind::Page];

    fn folder(self) -> PathBuf {
        Path::new(DEBUGFS).join(match self {
            Kind::Slab => "failslab",
            Kind::Page => "fail_page_alloc",
        })
    }

    fn set(self, file: &str, value: impl fmt::Display) -> io::Result<()> {
        write(&self.folder().join(file), value)
    }

    fn get(self, file: &str) -> io::Result<i64> {
        let path = self.folder().join(file);
        let text = fs::read_to_string(&path)?;
        text.trim()
            .parse()
            .map_err(|_| io::Error::other(format!("{} holds {text:?}", path.display())))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Slab => "objects",
            Kind::Page => "pages",
        })
    }
}

fn write(path: &Path, value: impl fmt::Display) -> io::Result<()> {
    let text = format!("{value}");
    fs::write(path, &text)
        .map_err(|e| io::Error::new(e.kind(), format!("{text:?} into {}: {e}", path.display())))
}

/// Whether this kernel can do it.
pub(crate) fn is_supported() -> bool {
    Path::new("/proc/thread-self/fail-nth").exists()
        && Kind::ALL
            .iter()
            .all(|k| k.folder().join("require-start").exists())
}

/// First and last address of the code of a module.
fn text_of(module: &str) -> io::Result<(u64, u64)> {
    let tail = format!("[{module}]");
    let (mut low, mut high) = (u64::MAX, 0);
    for line in fs::read_to_string("/proc/kallsyms")?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [address, "t" | "T", _, module] = words[..] {
            if module == tail {
                let address = u64::from_str_radix(address, 16).unwrap_or(0);
                low = low.min(address);
                high = high.max(address);
            }
        }
    }
    if high == 0 {
        return Err(io::Error::other(format!(
            "/proc/kallsyms shows no addresses of {module}: is it loaded, and is this root?"
        )));
    }
    Ok((low, high + LAST_SYMBOL))
}

/// Prepares both kinds: whoever allocates, sleeping or not, counts if it does so for `module`.
///
/// # Errors
///
/// When the module is not loaded or debugfs is not there.
pub(crate) fn only_for(module: &str, verbose: bool) -> io::Result<()> {
    let (start, end) = text_of(module)?;
    for kind in Kind::ALL {
        kind.set("probability", 0)?;
        kind.set("times", 0)?;
        kind.set("space", 0)?;
        kind.set("task-filter", 'N')?;
        kind.set("ignore-gfp-wait", 'N')?;
        kind.set("stacktrace-depth", 32)?;
        kind.set("require-start", format!("{start:#x}"))?;
        kind.set("require-end", format!("{end:#x}"))?;
        kind.set("verbose", if verbose { 2 } else { 0 })?;
        kind.set("verbose_ratelimit_interval_ms", 0)?;
    }
    Kind::Page.set("ignore-gfp-highmem", 'N')?;
    Kind::Page.set("min-order", 0)
}

/// Everybody's allocations count, whichever code they are for.
///
/// # Errors
///
/// When debugfs is not there.
pub(crate) fn for_all_code() -> io::Result<()> {
    for kind in Kind::ALL {
        kind.set("require-start", 0)?;
        kind.set("require-end", format!("{:#x}", u64::MAX))?;
        kind.set("verbose", 0)?;
    }
    Ok(())
}

/// Lets the `n`th allocation of the calling thread from now on fail.
///
/// # Errors
///
/// When the kernel lacks fault injection.
pub(crate) fn arm_thread(n: u32) -> io::Result<()> {
    write(Path::new("/proc/thread-self/fail-nth"), n)
}

/// Ends that; true if the allocation came, and failed.
///
/// # Errors
///
/// When the kernel lacks fault injection.
pub(crate) fn disarm_thread() -> io::Result<bool> {
    let left = fs::read_to_string("/proc/thread-self/fail-nth")?;
    arm_thread(0)?;
    Ok(left.trim() == "0")
}

/// The allocations of everybody, of one kind.
#[derive(Debug)]
pub(crate) struct Everybody {
    kind: Kind,
    /// The kernel's count as it is while nothing is armed.
    count: u64,
    /// What was asked for: the interval.
    armed: u64,
}

impl Everybody {
    /// The count of a machine that has not been used for this before.
    pub(crate) fn new(kind: Kind) -> Everybody {
        Everybody {
            kind,
            count: 0,
            armed: 0,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Says that the `n`th allocation after [`Everybody::arm`] is to fail.
    pub(crate) fn plan(&mut self, n: u32) {
        // No multiple of this lies between here and there. The kernel does not count at all for
        // an interval of 1, which only the first use of all can ask for.
        self.armed = self.count + u64::from(n);
    }

    /// From now on allocations count; another process than the one that disarms may say so.
    ///
    /// # Errors
    ///
    /// When debugfs cannot be written.
    pub(crate) fn arm(&self) -> io::Result<()> {
        self.kind.set("interval", self.armed)?;
        self.kind.set("times", 1)?;
        self.kind.set("probability", 100)
    }

    /// Ends that; true if the allocation came, and failed.
    ///
    /// # Errors
    ///
    /// When debugfs cannot be used.
    pub(crate) fn disarm(&mut self) -> io::Result<bool> {
        self.kind.set("probability", 0)?;
        let failed = self.kind.get("times")? == 0;
        if failed {
            self.note_failure();
        } else {
            self.catch_up()?;
        }
        Ok(failed)
    }

    fn note_failure(&mut self) {
        if self.armed > 1 {
            self.count = self.armed;
        }
    }

    /// The count is somewhere on the way to the interval: this thread allocates, for no module,
    /// until it is reached.
    fn catch_up(&mut self) -> io::Result<()> {
        let start = fs::read_to_string(self.kind.folder().join("require-start"))?;
        let end = fs::read_to_string(self.kind.folder().join("require-end"))?;
        let mine = Path::new("/proc/thread-self/make-it-fail");
        self.kind.set("task-filter", 'Y')?;
        self.kind.set("require-start", 0)?;
        self.kind.set("require-end", format!("{:#x}", u64::MAX))?;
        write(mine, 1)?;
        self.kind.set("probability", 100)?;
        let mut left = self.armed.saturating_mul(4) + 64;
        while self.kind.get("times").unwrap_or(1) != 0 && left > 0 {
            if let Ok((_, to)) = testlib::process::pipe() {
                // A page is allocated for the byte.
                let _ = fs::File::from(to).write(b"x");
            }
            left -= 1;
        }
        self.kind.set("probability", 0)?;
        write(mine, 0)?;
        self.kind.set("task-filter", 'N')?;
        self.kind.set("require-start", start.trim())?;
        self.kind.set("require-end", end.trim())?;
        if self.kind.get("times")? != 0 {
            return Err(io::Error::other(format!(
                "the kernel's count of {} is lost",
                self.kind
            )));
        }
        self.note_failure();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does with its count: every multiple of the interval fails, once.
    fn fails_at(count: &mut u64, interval: u64, allocations: u32) -> Option<u32> {
        for n in 1..=allocations {
            if interval > 1 {
                *count += 1;
                if *count % interval != 0 {
                    continue;
                }
            }
            return Some(n);
        }
        None
    }

    #[test]
    fn exactly_the_one_that_was_asked_for_fails() {
        let mut kernel = 0;
        let mut own = Everybody::new(Kind::Slab);
        for n in [1, 2, 3, 1, 1, 7, 2, 40, 1, 5] {
            own.plan(n);
            assert_eq!(fails_at(&mut kernel, own.armed, 1000), Some(n));
            own.note_failure();
            assert_eq!(own.count, kernel);
        }
    }

    #[test]
    fn a_count_that_was_not_reached_is_caught_up_with() {
        let mut kernel = 0;
        let mut own = Everybody::new(Kind::Page);
        for allocations in [0, 3, 9] {
            own.plan(10);
            assert_eq!(fails_at(&mut kernel, own.armed, allocations), None);
            assert!(fails_at(&mut kernel, own.armed, 1000).is_some());
            own.note_failure();
            assert_eq!(own.count, kernel);
        }
    }
}
