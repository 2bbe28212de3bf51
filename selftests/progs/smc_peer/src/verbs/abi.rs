// SPDX-License-Identifier: GPL-2.0

//! Structures of libibverbs, as its header `infiniband/verbs.h` lays them out. Their layout is
//! fixed: programs built against old headers run with new libraries.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Opaque to this program.
#[repr(C)]
pub(super) struct IbvDevice {
    _private: [u8; 0],
}

/// Opaque to this program.
#[repr(C)]
pub(super) struct IbvPd {
    _private: [u8; 0],
}

pub(super) type PollCq = unsafe extern "C" fn(*mut IbvCq, c_int, *mut IbvWc) -> c_int;
pub(super) type PostSend =
    unsafe extern "C" fn(*mut IbvQp, *mut IbvSendWr, *mut *mut IbvSendWr) -> c_int;
pub(super) type PostRecv =
    unsafe extern "C" fn(*mut IbvQp, *mut IbvRecvWr, *mut *mut IbvRecvWr) -> c_int;

/// The operations that the header calls through the context, among others that it does not.
#[repr(C)]
pub(super) struct IbvContext {
    device: *mut IbvDevice,
    ops_before_poll: [*mut c_void; 11],
    pub(super) poll_cq: PollCq,
    ops_before_post: [*mut c_void; 13],
    pub(super) post_send: PostSend,
    pub(super) post_recv: PostRecv,
}

/// The first members.
#[repr(C)]
pub(super) struct IbvCq {
    pub(super) context: *mut IbvContext,
}

/// The first members.
#[repr(C)]
pub(super) struct IbvQp {
    pub(super) context: *mut IbvContext,
    qp_context: *mut c_void,
    pd: *mut IbvPd,
    send_cq: *mut IbvCq,
    recv_cq: *mut IbvCq,
    srq: *mut c_void,
    handle: u32,
    pub(super) qp_num: u32,
}

#[repr(C)]
pub(super) struct IbvMr {
    context: *mut IbvContext,
    pd: *mut IbvPd,
    addr: *mut c_void,
    length: usize,
    handle: u32,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub(super) struct IbvGid(pub(super) [u8; 16]);

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IbvAhAttr {
    pub(super) dgid: IbvGid,
    pub(super) flow_label: u32,
    pub(super) sgid_index: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
    /// The route is a structure of its own, which ends with a byte of padding.
    pub(super) route_padding: u8,
    pub(super) dlid: u16,
    pub(super) sl: u8,
    pub(super) src_path_bits: u8,
    pub(super) static_rate: u8,
    pub(super) is_global: u8,
    pub(super) port_num: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IbvQpCap {
    pub(super) max_send_wr: u32,
    pub(super) max_recv_wr: u32,
    pub(super) max_send_sge: u32,
    pub(super) max_recv_sge: u32,
    pub(super) max_inline_data: u32,
}

#[repr(C)]
pub(super) struct IbvQpInitAttr {
    pub(super) qp_context: *mut c_void,
    pub(super) send_cq: *mut IbvCq,
    pub(super) recv_cq: *mut IbvCq,
    pub(super) srq: *mut c_void,
    pub(super) cap: IbvQpCap,
    pub(super) qp_type: c_int,
    pub(super) sq_sig_all: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IbvQpAttr {
    pub(super) qp_state: c_int,
    pub(super) cur_qp_state: c_int,
    pub(super) path_mtu: c_int,
    pub(super) path_mig_state: c_int,
    pub(super) qkey: u32,
    pub(super) rq_psn: u32,
    pub(super) sq_psn: u32,
    pub(super) dest_qp_num: u32,
    pub(super) qp_access_flags: c_uint,
    pub(super) cap: IbvQpCap,
    pub(super) ah_attr: IbvAhAttr,
    pub(super) alt_ah_attr: IbvAhAttr,
    pub(super) pkey_index: u16,
    pub(super) alt_pkey_index: u16,
    pub(super) en_sqd_async_notify: u8,
    pub(super) sq_draining: u8,
    pub(super) max_rd_atomic: u8,
    pub(super) max_dest_rd_atomic: u8,
    pub(super) min_rnr_timer: u8,
    pub(super) port_num: u8,
    pub(super) timeout: u8,
    pub(super) retry_cnt: u8,
    pub(super) rnr_retry: u8,
    pub(super) alt_port_num: u8,
    pub(super) alt_timeout: u8,
    pub(super) rate_limit: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IbvSge {
    pub(super) addr: u64,
    pub(super) length: u32,
    pub(super) lkey: u32,
}

#[repr(C)]
pub(super) struct IbvSendWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut IbvSendWr,
    pub(super) sg_list: *mut IbvSge,
    pub(super) num_sge: c_int,
    pub(super) opcode: c_int,
    pub(super) send_flags: c_uint,
    pub(super) imm_data: u32,
    pub(super) remote_addr: u64,
    pub(super) rkey: u32,
    /// The rest of a union whose other members are longer, and of what other work requests use.
    pub(super) unused: [u64; 9],
}

#[repr(C)]
pub(super) struct IbvRecvWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut IbvRecvWr,
    pub(super) sg_list: *mut IbvSge,
    pub(super) num_sge: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IbvWc {
    pub(super) wr_id: u64,
    pub(super) status: c_int,
    pub(super) opcode: c_int,
    pub(super) vendor_err: u32,
    pub(super) byte_len: u32,
    pub(super) imm_data: u32,
    pub(super) qp_num: u32,
    pub(super) src_qp: u32,
    pub(super) wc_flags: c_uint,
    pub(super) pkey_index: u16,
    pub(super) slid: u16,
    pub(super) sl: u8,
    pub(super) dlid_path_bits: u8,
}

pub(super) type GetDeviceList = unsafe extern "C" fn(*mut c_int) -> *mut *mut IbvDevice;
pub(super) type FreeDeviceList = unsafe extern "C" fn(*mut *mut IbvDevice);
pub(super) type GetDeviceName = unsafe extern "C" fn(*mut IbvDevice) -> *const c_char;
pub(super) type OpenDevice = unsafe extern "C" fn(*mut IbvDevice) -> *mut IbvContext;
pub(super) type CloseDevice = unsafe extern "C" fn(*mut IbvContext) -> c_int;
pub(super) type AllocPd = unsafe extern "C" fn(*mut IbvContext) -> *mut IbvPd;
pub(super) type DeallocPd = unsafe extern "C" fn(*mut IbvPd) -> c_int;
pub(super) type RegMr = unsafe extern "C" fn(*mut IbvPd, *mut c_void, usize, c_int) -> *mut IbvMr;
pub(super) type DeregMr = unsafe extern "C" fn(*mut IbvMr) -> c_int;
pub(super) type CreateCq =
    unsafe extern "C" fn(*mut IbvContext, c_int, *mut c_void, *mut c_void, c_int) -> *mut IbvCq;
pub(super) type DestroyCq = unsafe extern "C" fn(*mut IbvCq) -> c_int;
pub(super) type CreateQp = unsafe extern "C" fn(*mut IbvPd, *mut IbvQpInitAttr) -> *mut IbvQp;
pub(super) type DestroyQp = unsafe extern "C" fn(*mut IbvQp) -> c_int;
pub(super) type ModifyQp = unsafe extern "C" fn(*mut IbvQp, *mut IbvQpAttr, c_int) -> c_int;
pub(super) type QueryGid = unsafe extern "C" fn(*mut IbvContext, u8, c_int, *mut IbvGid) -> c_int;

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// Sizes and offsets worked out from the header by hand, for 64-bit pointers.
    #[test]
    fn layout_is_that_of_the_header() {
        let op = |n: usize| 8 + 8 * n;
        assert_eq!(offset_of!(IbvContext, poll_cq), op(11));
        assert_eq!(offset_of!(IbvContext, post_send), op(25));
        assert_eq!(offset_of!(IbvContext, post_recv), op(26));
        assert_eq!(offset_of!(IbvQp, qp_num), 52);
        assert_eq!(offset_of!(IbvMr, lkey), 36);
        assert_eq!(size_of::<IbvAhAttr>(), 32);
        assert_eq!(offset_of!(IbvAhAttr, dlid), 24);
        assert_eq!(offset_of!(IbvQpAttr, ah_attr), 56);
        assert_eq!(offset_of!(IbvQpAttr, pkey_index), 120);
        assert_eq!(size_of::<IbvQpAttr>(), 144);
        assert_eq!(offset_of!(IbvSendWr, remote_addr), 40);
        assert_eq!(size_of::<IbvSendWr>(), 128);
        assert_eq!(size_of::<IbvRecvWr>(), 32);
        assert_eq!(size_of::<IbvQpInitAttr>(), 64);
        assert_eq!(size_of::<IbvWc>(), 48);
    }
}
