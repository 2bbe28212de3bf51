// SPDX-License-Identifier: GPL-2.0

//! The module parameter that is a text.

use crate::sys;
use kernel::prelude::*;

/// The value that was given when the module was loaded; empty when there was none.
pub fn text() -> &'static CStr {
    // SAFETY: The helper returns a static buffer that is written only before the module is
    // initialised and always ends with a NUL.
    unsafe { CStr::from_char_ptr(sys::smc_rs_helper_text_param()) }
}
