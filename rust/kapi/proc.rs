// SPDX-License-Identifier: GPL-2.0

//! Files in `/proc/net`.
//!
//! C header: [`include/linux/proc_fs.h`](srctree/include/linux/proc_fs.h)

use crate::{
    net::ns::{
        Net,
        NetId, //
    },
    sys, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::from_result,
    prelude::*,
    seq_file::SeqFile, //
};

/// What a file shows.
pub trait Show: 'static {
    /// Writes the contents for `net`. May sleep. Called again with a larger buffer if the contents
    /// did not fit.
    ///
    /// # Errors
    ///
    /// The error of `read`.
    fn show(net: &Net, out: &SeqFile) -> Result;
}

/// A read-only file in `/proc/net` of one namespace.
///
/// # Invariants
///
/// The file exists, in the folder `parent`, which exists as long as the namespace does.
pub struct ProcEntry<T: Show> {
    name: &'static CStr,
    parent: *mut sys::proc_dir_entry,
    net: NetId,
    _type: PhantomData<fn() -> T>,
}

// SAFETY: The file may be removed by any thread.
unsafe impl<T: Show> Send for ProcEntry<T> {}
// SAFETY: There is nothing to change through a shared reference.
unsafe impl<T: Show> Sync for ProcEntry<T> {}

impl<T: Show> ProcEntry<T> {
    /// Makes the file.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if there is a file of that name, which the kernel does not tell apart.
    ///
    /// # Safety
    ///
    /// The result is dropped before `net` is gone, that is, in `PerNet::exit` at the latest.
    pub unsafe fn new(net: &Net, name: &'static CStr) -> Result<Self> {
        // SAFETY: The namespace is alive.
        let parent = unsafe { sys::smc_rs_helper_proc_net(net.as_ptr()) };
        // SAFETY: Name and function are valid as long as the file exists.
        let entry = unsafe {
            sys::proc_create_net_single(
                name.as_char_ptr(),
                0o444,
                parent,
                Some(show::<T>),
                ptr::null_mut(),
            )
        };
        if entry.is_null() {
            return Err(ENOMEM);
        }
        // INVARIANT: The file was just made.
        Ok(Self {
            name,
            parent,
            net: net.id(),
            _type: PhantomData,
        })
    }

    /// The namespace the file is in.
    pub fn net(&self) -> NetId {
        self.net
    }
}

impl<T: Show> Drop for ProcEntry<T> {
    /// Waits for readers that are in `show`. May sleep.
    fn drop(&mut self) {
        // SAFETY: By the type invariant the file exists.
        unsafe { sys::remove_proc_entry(self.name.as_char_ptr(), self.parent) };
    }
}

/// # Safety
///
/// To be called by the seq_file code only.
unsafe extern "C" fn show<T: Show>(seq: *mut sys::seq_file, _value: *mut c_void) -> c_int {
    from_result(|| {
        // SAFETY: An open file in `/proc/net` holds its namespace.
        let net = unsafe { Net::from_raw(sys::smc_rs_helper_seq_file_single_net(seq)) };
        // SAFETY: The file belongs to this call; bindings differ only in where they were
        // generated.
        let out = unsafe { SeqFile::from_raw(seq.cast()) };
        T::show(net, out)?;
        Ok(0)
    })
}
