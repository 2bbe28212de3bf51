// SPDX-License-Identifier: GPL-2.0

//! Loading the module while an allocation fails: it is loaded or it is not, and
//! what it had registered until then is gone again.

use crate::inject;
use nix::kmod::{delete_module, finit_module, DeleteModuleFlags, ModuleInitFlags};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::Path;
use testlib::tap::{say, Outcome, Reporter};

/// The tool's own limit, in case that the kernel never gets by without the allocation.
const MOST: u32 = 5000;

/// Returns how many of the two tests failed.
///
/// # Errors
///
/// When fault injection cannot be set up.
pub(crate) fn run(file: &Path, params: &str) -> io::Result<usize> {
    inject::for_all_code()?;
    let mut reporter = Reporter::new(2);
    reporter.report("loading while memory is short", &play(file, params));
    let loads = load(file, params).map_err(|e| format!("loading failed: {e}").into());
    reporter.report("loading afterwards", &loads);
    Ok(reporter.failed())
}

fn load(file: &Path, params: &str) -> io::Result<()> {
    let params = CString::new(params)?;
    Ok(finit_module(
        File::open(file)?,
        &params,
        ModuleInitFlags::empty(),
    )?)
}

fn play(file: &Path, params: &str) -> Outcome {
    let mut refused = 0;
    for n in 1..=MOST {
        inject::arm_thread(n)?;
        let loaded = load(file, params);
        let failed = inject::disarm_thread()?;
        match loaded {
            Ok(()) => delete_module(c"smc_rs", DeleteModuleFlags::O_NONBLOCK).map_err(|e| {
                format!("allocation {n}: the module was loaded but does not go: {e}")
            })?,
            Err(e) if !failed => return Err(format!("loading without a fault failed: {e}").into()),
            Err(e) if e.raw_os_error() == Some(libc::ENOMEM) => refused += 1,
            Err(e) => return Err(format!("allocation {n}: loading failed with {e}").into()),
        }
        if !failed {
            say(&format!(
                "# {refused} of {} allocations keep it from being loaded",
                n - 1
            ));
            return Ok(());
        }
    }
    Err(format!("loading takes more than {MOST} allocations").into())
}
