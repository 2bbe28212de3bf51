// SPDX-License-Identifier: GPL-2.0

//! The generated bindings. Private to this crate.

#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_imports
)]

use kernel::ffi;
use pin_init::{MaybeZeroable, Zeroable};

// These follow the target's word size; bindgen is told to leave them out.
type __kernel_size_t = usize;
type __kernel_ssize_t = isize;
type __kernel_ptrdiff_t = isize;

// SAFETY: The unit is a plain wrapper around its storage.
unsafe impl<Storage> Zeroable for __BindgenBitfieldUnit<Storage> where Storage: Zeroable {}
// SAFETY: A flexible array member has no bytes of its own.
unsafe impl<T> Zeroable for __IncompleteArrayField<T> {}

include!(concat!(
    env!("SMC_RS_OBJ"),
    "/rust/kapi/bindings_generated.rs"
));
