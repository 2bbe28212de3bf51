// SPDX-License-Identifier: GPL-2.0

//! One file in the `/proc/net` of every network namespace.

use crate::{
    net::ns::{
        Net,
        PerNet,
        PernetRegistration,
        PernetSlot, //
    },
    proc::{
        ProcEntry,
        Show, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// A file that exists in every network namespace.
pub trait NetFile: Show + Send + Sync + Sized {
    /// Name of the file in `/proc/net`.
    const NAME: &'static CStr;

    /// Where the registration is kept: a `static` of its own.
    fn slot() -> &'static PernetSlot;
}

/// Keeps the file of `T` in all namespaces, those that exist and those made later.
pub type NetFileRegistration<T> = PernetRegistration<File<T>>;

/// The file of one namespace.
#[pin_data]
pub struct File<T: NetFile> {
    #[pin]
    entry: Mutex<Option<ProcEntry<T>>>,
}

impl<T: NetFile> PerNet for File<T> {
    fn slot() -> &'static PernetSlot {
        T::slot()
    }

    fn new(net: &Net) -> Result<Arc<Self>> {
        // SAFETY: `exit` drops the entry before the namespace is gone.
        let entry = unsafe { ProcEntry::new(net, T::NAME) }?;
        Arc::pin_init(
            pin_init!(Self {
                entry <- new_mutex!(Some(entry), "net_file"),
            }),
            GFP_KERNEL,
        )
    }

    fn exit(&self) {
        let entry = self.entry.lock().take();
        drop(entry);
    }
}
