// SPDX-License-Identifier: GPL-2.0

//! Numbers in `/proc/sys/net` that each network namespace has of its own.
//!
//! C header: [`include/linux/sysctl.h`](srctree/include/linux/sysctl.h)

use crate::{
    net::{
        Net,
        PerNet,
        PernetRegistration,
        PernetSlot, //
    },
    sys, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    time::msecs_to_jiffies,
};

/// What values a number may have, and how user space writes it.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any unsigned number.
    Unsigned,
    /// An unsigned number between two others.
    UnsignedRange(i32, i32),
    /// A number between two others.
    Range(i32, i32),
    /// A time: seconds for user space, milliseconds here.
    Seconds,
}

/// A number that can be set.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name of the file.
    pub name: &'static CStr,
    /// Its values.
    pub kind: Kind,
    /// The value at first; milliseconds for a time.
    pub initial: u32,
}

/// Settings that every network namespace has.
pub trait NetSettings: Send + Sync + 'static {
    /// The folder below `/proc/sys`.
    const PATH: &'static CStr;
    /// The settings.
    const SETTINGS: &'static [Setting];

    /// Where the registration is kept: a `static` of its own.
    fn slot() -> &'static PernetSlot;
}

/// Keeps the settings of `T` in all namespaces, those that exist and those made later.
pub type SettingsRegistration<T> = PernetRegistration<Settings<T>>;

/// The settings of one namespace.
#[pin_data]
pub struct Settings<T: NetSettings> {
    /// The values, which outlive the files.
    pub values: Arc<Values>,
    #[pin]
    files: Mutex<Option<Files>>,
    _type: PhantomData<T>,
}

impl<T: NetSettings> PerNet for Settings<T> {
    fn slot() -> &'static PernetSlot {
        T::slot()
    }

    fn new(net: &Net) -> Result<Arc<Self>> {
        let values = Values::new(T::SETTINGS)?;
        // SAFETY: `exit` drops the files before the namespace is gone.
        let files = unsafe { Files::new(net, T::PATH, &values) }?;
        Arc::pin_init(
            pin_init!(Self {
                values,
                files <- new_mutex!(Some(files), "net_settings"),
                _type: PhantomData,
            }),
            GFP_KERNEL,
        )
    }

    fn exit(&self) {
        let files = self.files.lock().take();
        drop(files);
    }
}

/// The values of one namespace, by their place in the list of settings.
pub struct Values {
    settings: &'static [Setting],
    cells: KVec<Atomic<i32>>,
}

impl Values {
    /// All settings with their first values.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(settings: &'static [Setting]) -> Result<Arc<Self>> {
        let mut cells = KVec::with_capacity(settings.len(), GFP_KERNEL)?;
        for setting in settings {
            let value = match setting.kind {
                Kind::Seconds => msecs_to_jiffies(setting.initial) as i32,
                // CAST: User space sees the same 32 bits.
                _ => setting.initial as i32,
            };
            cells.push(Atomic::new(value), GFP_KERNEL)?;
        }
        Ok(Arc::new(Self { settings, cells }, GFP_KERNEL)?)
    }

    /// The value of a setting; a time in milliseconds. Any context.
    pub fn get(&self, index: usize) -> u32 {
        let (Some(setting), Some(cell)) = (self.settings.get(index), self.cells.get(index)) else {
            return 0;
        };
        let value = cell.load(Relaxed);
        match setting.kind {
            Kind::Seconds => {
                let jiffies = u32::try_from(value).unwrap_or(0);
                // SAFETY: No requirements.
                unsafe { sys::smc_rs_helper_jiffies_to_ms(jiffies as c_ulong) }
            }
            // CAST: User space sees the same 32 bits.
            _ => value as u32,
        }
    }

    /// Changes a setting that is no time. Any context.
    pub fn set(&self, index: usize, value: u32) {
        if let Some(cell) = self.cells.get(index) {
            cell.store(value as i32, Relaxed);
        }
    }
}

/// The files of one namespace in `/proc/sys`.
///
/// # Invariants
///
/// `header` is registered and points to `table`, whose entries point to cells of `values` and to
/// `limits`.
struct Files {
    header: NonNull<sys::ctl_table_header>,
    _table: KVec<sys::ctl_table>,
    _limits: KVec<[c_int; 2]>,
    _values: Arc<Values>,
}

// SAFETY: The files may be removed by any thread.
unsafe impl Send for Files {}
// SAFETY: There are no methods.
unsafe impl Sync for Files {}

impl Files {
    /// Makes the files of `values` in the folder `path` below `/proc/sys`. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if there are such files already, which the kernel does not tell apart.
    ///
    /// # Safety
    ///
    /// The result is dropped before `net` is gone, that is, in `PerNet::exit` at the latest.
    unsafe fn new(net: &Net, path: &'static CStr, values: &Arc<Values>) -> Result<Self> {
        let mut limits = KVec::with_capacity(values.settings.len(), GFP_KERNEL)?;
        for setting in values.settings {
            limits.push(
                match setting.kind {
                    Kind::Range(min, max) | Kind::UnsignedRange(min, max) => [min, max],
                    Kind::Unsigned | Kind::Seconds => [0, 0],
                },
                GFP_KERNEL,
            )?;
        }
        let mut table = KVec::with_capacity(values.settings.len(), GFP_KERNEL)?;
        let parts = values.settings.iter().zip(values.cells.iter());
        for ((setting, cell), limits) in parts.zip(limits.iter_mut()) {
            table.push(entry(setting, cell, limits), GFP_KERNEL)?;
        }
        // SAFETY: The table and what it points to stay until `drop`, which is before the namespace
        // is gone.
        let header = unsafe {
            sys::register_net_sysctl_sz(
                net.as_ptr(),
                path.as_char_ptr(),
                table.as_mut_ptr(),
                table.len(),
            )
        };
        // INVARIANT: The files were just made; moving the vectors does not move what is in them.
        Ok(Self {
            header: NonNull::new(header).ok_or(ENOMEM)?,
            _table: table,
            _limits: limits,
            _values: values.clone(),
        })
    }
}

impl Drop for Files {
    /// Waits for reads and writes under way. May sleep.
    fn drop(&mut self) {
        // SAFETY: By the type invariant the table is registered.
        unsafe { sys::unregister_net_sysctl_table(self.header.as_ptr()) };
    }
}

/// Reads or writes a file.
type Handler = Option<
    unsafe extern "C" fn(
        *const sys::ctl_table,
        c_int,
        *mut c_void,
        *mut usize,
        *mut sys::loff_t,
    ) -> c_int,
>;

/// The C description of a file.
fn entry(setting: &Setting, cell: &Atomic<i32>, limits: &mut [c_int; 2]) -> sys::ctl_table {
    let [min, max] = limits;
    let (handler, extra1, extra2): (Handler, *mut c_int, *mut c_int) = match setting.kind {
        Kind::Unsigned => (
            Some(sys::proc_douintvec),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
        ),
        Kind::UnsignedRange(..) => (Some(sys::proc_douintvec_minmax), min, max),
        Kind::Range(..) => (Some(sys::proc_dointvec_minmax), min, max),
        Kind::Seconds => (
            Some(sys::proc_dointvec_jiffies),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
        ),
    };
    sys::ctl_table {
        procname: setting.name.as_char_ptr(),
        data: cell.as_ptr().cast(),
        maxlen: size_of::<c_int>() as c_int,
        mode: 0o644,
        proc_handler: handler,
        extra1: extra1.cast(),
        extra2: extra2.cast(),
        ..pin_init::zeroed()
    }
}
