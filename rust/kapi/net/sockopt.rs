// SPDX-License-Identifier: GPL-2.0

//! Values of `setsockopt` and `getsockopt`.
//!
//! C header: [`include/linux/sockptr.h`](srctree/include/linux/sockptr.h)

use crate::sys;
use core::marker::PhantomData;
use kernel::{
    error::to_result,
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

/// Level of the options every socket has.
pub const SOL_SOCKET: i32 = 1;
/// Level of the TCP options.
pub const SOL_TCP: i32 = 6;

/// The value given to `setsockopt`, in user or in kernel memory.
///
/// # Invariants
///
/// `ptr` is what the socket layer passed to a `setsockopt` operation that runs for `'a`, with
/// `len` the length that came with it.
pub struct OptIn<'a> {
    ptr: sys::sockptr_t,
    len: u32,
    _call: PhantomData<&'a ()>,
}

impl OptIn<'_> {
    /// # Safety
    ///
    /// The arguments are those of a `setsockopt` operation that runs for the life time of the
    /// result.
    pub(crate) unsafe fn new(ptr: sys::sockptr_t, len: u32) -> Self {
        // INVARIANT: As promised by the caller.
        Self {
            ptr,
            len,
            _call: PhantomData,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const sys::sockptr_t {
        &self.ptr
    }

    /// Length in bytes as the caller stated it.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies the first bytes of the value.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the value is shorter than `out`, `EFAULT` if it cannot be read.
    pub fn read(&self, out: &mut [u8]) -> Result {
        if (self.len as usize) < out.len() {
            return Err(EINVAL);
        }
        // SAFETY: `out` is valid for its length; a kernel pointer is valid for `len` bytes, and a
        // user pointer is checked while it is read.
        to_result(unsafe {
            sys::smc_rs_helper_copy_from_sockptr(out.as_mut_ptr().cast(), &self.ptr, 0, out.len())
        })
    }

    /// The value as an integer.
    ///
    /// # Errors
    ///
    /// As [`OptIn::read`].
    pub fn read_i32(&self) -> Result<i32> {
        let mut bytes = [0; 4];
        self.read(&mut bytes)?;
        Ok(i32::from_ne_bytes(bytes))
    }
}

/// Where `getsockopt` puts the value, in user memory.
pub struct OptOut<'a> {
    value: *mut c_char,
    len: *mut c_int,
    _call: PhantomData<&'a ()>,
}

impl OptOut<'_> {
    /// Wraps the user pointers of a `getsockopt` operation.
    pub(crate) fn new(value: *mut c_char, len: *mut c_int) -> Self {
        Self {
            value,
            len,
            _call: PhantomData,
        }
    }

    pub(crate) fn value(&self) -> *mut c_char {
        self.value
    }

    pub(crate) fn len(&self) -> *mut c_int {
        self.len
    }

    /// Returns `value`, cut to the length user space has room for, and the length written.
    ///
    /// # Errors
    ///
    /// `EFAULT` if user memory cannot be accessed, `EINVAL` if the length there is negative.
    pub fn write(&self, value: &[u8]) -> Result {
        let len_ptr = UserPtr::from_ptr(self.len.cast());
        let room: c_int = UserSlice::new(len_ptr, size_of::<c_int>())
            .reader()
            .read()?;
        let room = usize::try_from(room).map_err(|_| EINVAL)?;
        let part = &value[..room.min(value.len())];
        let len = c_int::try_from(part.len()).map_err(|_| EINVAL)?;
        UserSlice::new(len_ptr, size_of::<c_int>())
            .writer()
            .write(&len)?;
        UserSlice::new(UserPtr::from_ptr(self.value.cast()), part.len())
            .writer()
            .write_slice(part)
    }

    /// Returns an integer.
    ///
    /// # Errors
    ///
    /// As [`OptOut::write`].
    pub fn write_i32(&self, value: i32) -> Result {
        self.write(&value.to_ne_bytes())
    }
}
