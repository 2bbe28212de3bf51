// SPDX-License-Identifier: GPL-2.0

//! RDMA devices.

use crate::sync::SpinLockBh;
use crate::sys;
use core::ops::RangeInclusive;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::new_condvar;
use kernel::prelude::*;
use kernel::str::CStr;
use kernel::sync::atomic::{Atomic, Relaxed};
use kernel::sync::{Arc, CondVar};
use kernel::task::might_sleep;

static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// An RDMA device, from the moment a [`Client`](super::Client) was told about it.
///
/// The value may outlive the device's registration: then [`is_removed`](Self::is_removed) holds,
/// and creating anything on it fails with `ENODEV`. Drop the last reference in process context.
///
/// # Invariants
///
/// `raw` points to a device whose memory is kept by a reference that the value owns. The device is
/// registered while `removed` is false or a use is counted.
#[pin_data(PinnedDrop)]
pub struct Device {
    raw: NonNull<sys::ib_device>,
    /// Number of this registration, never used twice.
    id: u64,
    #[pin]
    uses: SpinLockBh<Uses>,
    #[pin]
    idle: CondVar,
}

struct Uses {
    count: usize,
    removed: bool,
}

// SAFETY: Devices may be used and released from any thread.
unsafe impl Send for Device {}
// SAFETY: All operations through a shared reference are thread-safe.
unsafe impl Sync for Device {}

impl Device {
    /// Wraps a device that is being announced.
    ///
    /// # Safety
    ///
    /// `raw` must be a registered device, and stay registered until [`Self::begin_removal`] and
    /// [`Self::wait_unused`] have been called.
    pub(super) unsafe fn from_raw(raw: NonNull<sys::ib_device>) -> Result<Arc<Self>> {
        let device = Arc::pin_init(
            pin_init!(Self {
                raw: {
                    // SAFETY: The device is registered, so it has references; this one is dropped
                    // with the value.
                    unsafe { sys::smc_rs_helper_rdma_get_device(raw.as_ptr()) };
                    raw
                },
                id: NEXT_ID.fetch_add(1u64, Relaxed),
                uses <- crate::new_spinlock_bh!(Uses { count: 0, removed: false }, "rdma_device_uses"),
                idle <- new_condvar!("rdma_device_idle"),
            }),
            GFP_KERNEL,
        )?;
        Ok(device)
    }

    pub(crate) fn as_raw(&self) -> *mut sys::ib_device {
        self.raw.as_ptr()
    }

    /// The device's name. It is a copy of a moment: devices can be renamed.
    pub fn name(&self) -> DeviceName {
        let mut name = DeviceName([0; 64]);
        // SAFETY: The device's memory is valid by the type invariant.
        let from = unsafe { &raw const (*self.as_raw()).name };
        for (i, byte) in name.0.iter_mut().take(63).enumerate() {
            // SAFETY: `i` is below the size of the array; the bytes may change, so each is read
            // once.
            let c = unsafe { from.cast::<u8>().add(i).read_volatile() };
            if c == 0 {
                break;
            }
            *byte = c;
        }
        name
    }

    /// A number for this registration of the device. A device that is removed and added again, as
    /// when it moves to another network namespace, gets a new one.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The numbers of the ports. Ports above 255, which only switches have, are left out.
    pub fn ports(&self) -> RangeInclusive<u8> {
        // SAFETY: The device's memory is valid; the field is constant once it is registered.
        let count = unsafe { (*self.as_raw()).phys_port_cnt };
        1..=u8::try_from(count).unwrap_or(u8::MAX)
    }

    /// Whether the port carries RoCE.
    pub fn port_is_roce(&self, port: u8) -> bool {
        // SAFETY: The device's memory, with its port table, is valid by the type invariant.
        unsafe { sys::smc_rs_helper_rdma_port_is_roce(self.as_raw(), port.into()) }
    }

    /// Whether the port is up, from what the device last reported. Any context.
    pub fn port_active(&self, port: u8) -> bool {
        let Ok(_use) = DeviceUse::new_ref(self) else {
            return false;
        };
        let mut state = 0;
        // SAFETY: The device is registered; an impossible port is refused.
        let ret = unsafe { sys::ib_get_cached_port_state(self.as_raw(), port.into(), &mut state) };
        ret == 0 && state == sys::ib_port_state_IB_PORT_ACTIVE
    }

    /// The port's active MTU as the code 1 (256 bytes) to 5 (4096 bytes), or 0 when the device
    /// cannot tell.
    ///
    /// Process context; asks the device, which may take the RTNL.
    pub fn active_mtu(&self, port: u8) -> u8 {
        self.query_mtu(port.into()).unwrap_or(0)
    }

    fn query_mtu(&self, port: u32) -> Result<u8> {
        might_sleep();
        let _use = DeviceUse::new_ref(self)?;
        let mut attr = KBox::<sys::ib_port_attr>::zeroed(GFP_KERNEL)?;
        // SAFETY: The device is registered and `attr` is a valid place for the answer.
        to_result(unsafe { sys::ib_query_port(self.as_raw(), port, &mut *attr) })?;
        Ok(u8::try_from(attr.active_mtu)?)
    }

    /// The NUMA node of the device's memory, if known.
    pub fn node(&self) -> Option<i32> {
        let _use = DeviceUse::new_ref(self).ok()?;
        // SAFETY: The device is registered, so its parent exists.
        let node = unsafe { sys::smc_rs_helper_rdma_node(self.as_raw()) };
        (node >= 0).then_some(node)
    }

    /// Whether a driver plays the device in software, so that the processor makes each packet.
    pub fn is_software(&self) -> bool {
        // SAFETY: The device's memory is valid; what the helper reads is constant once it is
        // registered.
        unsafe { sys::smc_rs_helper_rdma_is_software(self.as_raw()) }
    }

    /// The PCI function behind the device; `None` for software devices.
    pub fn pci(&self) -> Option<PciIdentity> {
        let _use = DeviceUse::new_ref(self).ok()?;
        let mut raw = sys::smc_rs_pci::default();
        // SAFETY: The device is registered, so its parent exists; `raw` is a place for the answer.
        let found = unsafe { sys::smc_rs_helper_rdma_pci(self.as_raw(), &mut raw) };
        found.then_some(PciIdentity {
            vendor: raw.vendor,
            device: raw.device,
            slot: raw.slot,
        })
    }

    /// The name of the device that this one is a part of, which of a PCI function is its address;
    /// `None` where there is no such device, as of most software devices.
    pub fn parent_name(&self) -> Option<DeviceName> {
        let _use = DeviceUse::new_ref(self).ok()?;
        let mut name = DeviceName([0; 64]);
        let room = name.0.len();
        // SAFETY: The device is registered, so its parent exists; `name` has the room.
        let found = unsafe {
            sys::smc_rs_helper_rdma_parent(self.as_raw(), name.0.as_mut_ptr().cast(), room)
        };
        found.then_some(name)
    }

    /// How many pages one fast-registration memory region can cover.
    pub fn max_fast_reg_pages(&self) -> u32 {
        // SAFETY: The device's memory is valid; attributes are constant once it is registered.
        unsafe { (*self.as_raw()).attrs.max_fast_reg_page_list_len }
    }

    /// The largest number of entries of a completion queue.
    pub fn max_cqe(&self) -> u32 {
        // SAFETY: As in `max_fast_reg_pages`.
        unsafe { (*self.as_raw()).attrs.max_cqe }
    }

    /// The largest number of work requests of a queue.
    pub fn max_qp_wr(&self) -> u32 {
        // SAFETY: As in `max_fast_reg_pages`.
        unsafe { (*self.as_raw()).attrs.max_qp_wr }
    }

    /// The number of completion vectors (interrupts) to spread completion queues over.
    pub fn completion_vectors(&self) -> u32 {
        // SAFETY: As in `max_fast_reg_pages`.
        unsafe { (*self.as_raw()).num_comp_vectors }.max(1) as u32
    }

    /// Whether the device has been removed, or is being removed.
    pub fn is_removed(&self) -> bool {
        self.uses.lock().removed
    }

    /// Refuses new uses from now on.
    pub(super) fn begin_removal(&self) {
        self.uses.lock().removed = true;
    }

    /// Waits until nothing that was created on the device is left. Process context.
    pub fn wait_unused(&self) {
        might_sleep();
        let mut uses = self.uses.lock();
        while uses.count > 0 {
            self.idle.wait(&mut uses);
        }
    }

    fn begin_use(&self) -> Result {
        let mut uses = self.uses.lock();
        if uses.removed {
            return Err(ENODEV);
        }
        uses.count = uses.count.checked_add(1).ok_or(EOVERFLOW)?;
        Ok(())
    }

    fn end_use(&self) {
        let mut uses = self.uses.lock();
        // Every call ends one that was begun, so this does not wrap.
        uses.count = uses.count.wrapping_sub(1);
        if uses.count == 0 && uses.removed {
            // Under the lock, so that a waiter cannot free the condition before it is signalled.
            self.idle.notify_all();
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Device {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Gives back the reference taken when the value was made.
        unsafe { sys::smc_rs_helper_rdma_put_device(self.raw.as_ptr()) };
    }
}

/// What a PCI function says about itself.
#[derive(Clone, Copy)]
pub struct PciIdentity {
    /// Number of the vendor.
    pub vendor: u16,
    /// Number that the vendor gave the device.
    pub device: u16,
    slot: [u8; 16],
}

impl PciIdentity {
    /// Domain, bus, device and function, as `0000:01:00.0`.
    pub fn slot(&self) -> &[u8] {
        self.slot.split(|&byte| byte == 0).next().unwrap_or(&[])
    }
}

/// The name of a device, copied.
#[derive(Clone, Copy)]
pub struct DeviceName([u8; 64]);

impl DeviceName {
    /// The name as text; names that are not text give an empty string.
    pub fn as_str(&self) -> &str {
        CStr::from_bytes_until_nul(&self.0)
            .ok()
            .and_then(|name| name.to_str().ok())
            .unwrap_or("")
    }
}

impl kernel::fmt::Display for DeviceName {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Keeps a device registered: its removal waits until all uses are gone.
pub struct DeviceUse(Arc<Device>);

impl DeviceUse {
    /// Begins a use. Any context.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the device is being removed.
    pub fn new(device: &Arc<Device>) -> Result<Self> {
        device.begin_use()?;
        Ok(Self(device.clone()))
    }

    /// A use for the time of a function call.
    pub(super) fn new_ref(device: &Device) -> Result<DeviceUseRef<'_>> {
        device.begin_use()?;
        Ok(DeviceUseRef(device))
    }

    /// The device in use.
    #[inline]
    pub fn device(&self) -> &Arc<Device> {
        &self.0
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut sys::ib_device {
        self.0.as_raw()
    }
}

impl Drop for DeviceUse {
    fn drop(&mut self) {
        self.0.end_use();
    }
}

/// As [`DeviceUse`], borrowing the device.
pub(super) struct DeviceUseRef<'a>(&'a Device);

impl Drop for DeviceUseRef<'_> {
    fn drop(&mut self) {
        self.0.end_use();
    }
}
