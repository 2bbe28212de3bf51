// SPDX-License-Identifier: GPL-2.0

//! Short forms for what every check says.

use std::io;

/// Fails the check with a formatted text unless the condition holds.
macro_rules! ensure {
    ($cond:expr, $($text:tt)+) => {
        if !$cond {
            return Err(format!($($text)+).into());
        }
    };
}

/// Fails the check unless two values are equal.
macro_rules! same {
    ($what:expr, $got:expr, $want:expr) => {{
        let (got, want) = (&$got, &$want);
        if got != want {
            return Err(format!("{}: got {got:?}, expected {want:?}", $what).into());
        }
    }};
}

/// Skips the check.
macro_rules! skip {
    ($($text:tt)+) => {
        return Err(testlib::tap::Problem::Skipped(format!($($text)+)))
    };
}

/// The result must be an error with one of these numbers.
pub(crate) fn fails<T: std::fmt::Debug>(
    what: &str,
    result: io::Result<T>,
    allowed: &[i32],
) -> Result<i32, String> {
    match result {
        Ok(v) => Err(format!("{what} succeeded with {v:?} but must fail")),
        Err(e) => match e.raw_os_error() {
            Some(n) if allowed.contains(&n) => Ok(n),
            _ => {
                let names: Vec<String> = allowed
                    .iter()
                    .map(|n| io::Error::from_raw_os_error(*n).to_string())
                    .collect();
                Err(format!(
                    "{what} failed with '{e}', expected {}",
                    names.join(" or ")
                ))
            }
        },
    }
}

/// The result must be a success; the text says which call it was.
pub(crate) fn works<T>(what: &str, result: io::Result<T>) -> Result<T, String> {
    result.map_err(|e| format!("{what} failed: {e}"))
}
