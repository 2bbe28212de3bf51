// SPDX-License-Identifier: GPL-2.0

//! The way to a peer.
//!
//! C header: [`include/rdma/ib_addr.h`](srctree/include/rdma/ib_addr.h)

use super::device::{Device, DeviceUse};
use crate::sys;
use kernel::bindings;
use kernel::error::{from_err_ptr, to_result};
use kernel::ffi::{c_int, c_void};
use kernel::prelude::*;
use kernel::task::might_sleep;
use kernel::types::Opaque;

/// How packets for a GID leave the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct L2Route {
    /// The MAC address of the next hop.
    pub dmac: [u8; 6],
    /// The hop limit (time to live) of the route.
    pub hop_limit: u8,
    /// The next hop is a gateway, not the peer itself.
    pub via_gateway: bool,
}

/// How long to wait for the neighbour's answer, in milliseconds.
const NEIGHBOUR_TIMEOUT_MS: usize = 1000;

/// Room for an IPv4 or IPv6 address with its family.
#[repr(C, align(8))]
#[derive(Default)]
struct SockAddr([u8; 32]);

#[pin_data]
struct Request {
    from: SockAddr,
    to: SockAddr,
    addr: Opaque<sys::rdma_dev_addr>,
    status: c_int,
    #[pin]
    done: Opaque<bindings::completion>,
}

/// Resolves the next hop from the GID at `sgid_index` of the port to `dgid`, in the network
/// namespace of that GID's network device.
///
/// Process context: waits up to a second for the neighbour to answer.
///
/// # Errors
///
/// `ENODEV` when the device is being removed, `ENODATA` when the local GID is gone, `ETIMEDOUT` when
/// the neighbour does not answer, `ENETUNREACH` and the like when there is no route.
pub fn resolve_dmac(
    device: &Device,
    port: u8,
    sgid_index: u32,
    dgid: &[u8; 16],
) -> Result<L2Route> {
    might_sleep();
    let _use = DeviceUse::new_ref(device)?;
    let sgid = SourceGid::new(device, port, sgid_index)?;
    let mut request = KBox::pin_init(Request::new(), GFP_KERNEL)?;
    // SAFETY: Nothing of the request is moved.
    let request = unsafe { request.as_mut().get_unchecked_mut() };
    let addr = request.addr.get();
    // SAFETY: `from` and `to` have room for either kind of address; the GIDs are 16 bytes long.
    unsafe {
        sys::smc_rs_helper_rdma_gid_to_addr(sgid.gid(), (&raw mut request.from).cast());
        sys::smc_rs_helper_rdma_gid_to_addr(dgid.as_ptr(), (&raw mut request.to).cast());
    }
    // SAFETY: The structure is ours. The core wants some namespace and replaces it by that of the
    // GID's network device.
    unsafe {
        (*addr).net = &raw mut sys::init_net;
        (*addr).sgid_attr = sgid.0;
    }
    let request = &raw mut *request;
    // SAFETY: Addresses and structure are valid until the callback has run, for which this
    // function waits whenever the call succeeds.
    to_result(unsafe {
        sys::rdma_resolve_ip(
            (&raw mut (*request).from).cast(),
            (&raw const (*request).to).cast(),
            addr,
            NEIGHBOUR_TIMEOUT_MS,
            Some(resolved),
            true,
            request.cast(),
        )
    })?;
    // SAFETY: The completion is initialised, and the callback completes it.
    unsafe { bindings::wait_for_completion((*request).done.get()) };
    // SAFETY: The callback has run, so the request is ours alone again.
    let (request, addr) = unsafe { (&*request, &*addr) };
    to_result(request.status)?;
    let mut dmac = [0; 6];
    dmac.copy_from_slice(&addr.dst_dev_addr[..6]);
    Ok(L2Route {
        dmac,
        hop_limit: u8::try_from(addr.hoplimit).unwrap_or(u8::MAX),
        via_gateway: addr.network != sys::rdma_network_type_RDMA_NETWORK_IB,
    })
}

impl Request {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            from: SockAddr::default(),
            to: SockAddr::default(),
            addr: Opaque::zeroed(),
            status: 0,
            done <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is a valid place for a completion.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }
}

/// # Safety
///
/// Called once by the core, with the request as `context`.
unsafe extern "C" fn resolved(
    status: c_int,
    _from: *mut sys::sockaddr,
    _addr: *mut sys::rdma_dev_addr,
    context: *mut c_void,
) {
    let request = context.cast::<Request>();
    // SAFETY: The request lives until the completion is signalled, and nobody else uses it.
    unsafe { (*request).status = status };
    // SAFETY: As above; the completion is initialised.
    unsafe { bindings::complete((*request).done.get()) };
}

/// A reference to an entry of a GID table.
struct SourceGid(*const sys::ib_gid_attr);

impl SourceGid {
    fn new(device: &Device, port: u8, index: u32) -> Result<Self> {
        let index = c_int::try_from(index)?;
        // SAFETY: The caller keeps the device registered; impossible values are refused.
        let attr = unsafe { sys::rdma_get_gid_attr(device.as_raw(), port.into(), index) };
        Ok(Self(from_err_ptr(attr.cast_mut())?))
    }

    fn gid(&self) -> *const u8 {
        // SAFETY: The entry is kept by the reference.
        unsafe { (&raw const (*self.0).gid).cast() }
    }
}

impl Drop for SourceGid {
    fn drop(&mut self) {
        // SAFETY: Gives back the reference taken in `new`.
        unsafe { sys::rdma_put_gid_attr(self.0) };
    }
}
