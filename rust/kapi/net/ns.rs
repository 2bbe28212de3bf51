// SPDX-License-Identifier: GPL-2.0

//! Network namespaces and state kept per namespace.
//!
//! C headers: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h),
//! [`include/net/netns/generic.h`](srctree/include/net/netns/generic.h)

use super::tcp_linger;
use crate::sys;
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        AtomicBool,
        AtomicPtr,
        AtomicU32,
        Ordering, //
    }, //
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    sync::{
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        rcu,
        Arc, //
    },
    types::Opaque, //
};

/// A network namespace.
///
/// # Invariants
///
/// While a reference exists the namespace is alive: somebody holds a reference count on it, or the
/// namespace core is inside a callback that was given it.
#[repr(transparent)]
pub struct Net(Opaque<sys::net>);

// SAFETY: `get_net` and `put_net` may be called from any thread.
unsafe impl Send for Net {}
// SAFETY: The methods of `Net` only read fields that never change.
unsafe impl Sync for Net {}

/// A counted reference to a network namespace.
///
/// Sockets of user space hold one; dropping the last one starts the tear-down of the namespace in
/// a work item, so dropping is legal in any context.
pub type NetRef = ARef<Net>;

// SAFETY: `get_net` and `put_net` count references, and `put_net` of the last one does not free
// the namespace before all other users are done.
unsafe impl AlwaysRefCounted for Net {
    fn inc_ref(&self) {
        // SAFETY: By the type invariant the namespace is alive.
        unsafe { sys::smc_rs_helper_get_net(self.as_ptr()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller passes on a reference that `inc_ref` made.
        unsafe { sys::smc_rs_helper_put_net(obj.cast().as_ptr()) };
    }
}

impl Net {
    /// Borrows a namespace.
    ///
    /// # Safety
    ///
    /// `ptr` points to a namespace that fulfils the type invariant for `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut sys::net) -> &'a Self {
        // SAFETY: `Net` is a transparent wrapper, the rest is promised by the caller.
        unsafe { &*ptr.cast() }
    }

    /// The C structure.
    pub(crate) fn as_ptr(&self) -> *mut sys::net {
        self.0.get()
    }

    /// Takes a reference that keeps the namespace alive.
    pub fn to_ref(&self) -> NetRef {
        self.into()
    }

    /// Whether this is the namespace the system began with.
    pub fn is_initial(&self) -> bool {
        core::ptr::eq(self.as_ptr(), &raw const sys::init_net)
    }

    /// Where the network device of this name, in the namespace `owner`, is in the stack (bond,
    /// bridge, VLAN) of which the one of number `ifindex` is the top. `None` where it is not in it,
    /// or where there are no such devices. Any context.
    pub fn interface_layer(&self, ifindex: i32, owner: NetId, name: &[u8]) -> Option<Layer> {
        let mut text = [0u8; 16];
        text.get_mut(..name.len())?.copy_from_slice(name);
        if name.len() == text.len() {
            return None;
        }
        let name = text.as_ptr().cast();
        // SAFETY: The namespace is alive, the name ends with a NUL.
        match unsafe {
            sys::smc_rs_helper_interface_layer(self.as_ptr(), ifindex, owner.cookie(), name)
        } {
            0 => Some(Layer::Lowest),
            1 => Some(Layer::Top),
            2 => Some(Layer::Between),
            _ => None,
        }
    }

    /// The number of this namespace.
    pub fn id(&self) -> NetId {
        // SAFETY: By the type invariant the namespace is alive.
        NetId(unsafe { sys::smc_rs_helper_net_cookie(self.as_ptr()) })
    }
}

/// A place in a stack of network devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The bottom, in whatever namespace. Of several devices side by side, as the members of a
    /// bond, it is the first one that counts. The only device of a stack of one is there.
    Lowest,
    /// The top.
    Top,
    /// Another device below the top, in its namespace.
    Between,
}

/// Names a network namespace without keeping it alive. Never used twice during one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetId(u64);

impl NetId {
    /// The number of the namespace behind a raw pointer.
    ///
    /// # Safety
    ///
    /// `net` is a namespace whose memory is valid during the call.
    pub unsafe fn from_raw<N>(net: *const N) -> Self {
        // SAFETY: As promised by the caller; the number is set before anybody can see the
        // namespace and never changes.
        Self(unsafe { sys::smc_rs_helper_net_cookie(net.cast()) })
    }

    /// The number that C code read from a namespace.
    pub(crate) fn from_cookie(cookie: u64) -> Self {
        Self(cookie)
    }

    /// The value user space gets from the socket option `SO_NETNS_COOKIE`.
    pub fn cookie(self) -> u64 {
        self.0
    }
}

/// State that exists once in each network namespace.
pub trait PerNet: Send + Sync + Sized + 'static {
    /// The place where the registration of this type is kept: a `static` of its own.
    fn slot() -> &'static PernetSlot;

    /// Makes the state of a new namespace. May sleep.
    ///
    /// # Errors
    ///
    /// An error makes the creation of the namespace fail.
    fn new(net: &Net) -> Result<Arc<Self>>;

    /// The namespace goes away: no socket of user space is left in it. May sleep.
    ///
    /// Afterwards [`PernetRegistration::get`] no longer finds the state; who has a reference keeps
    /// it.
    fn exit(&self) {}
}

/// Tells the registration of one [`PerNet`] type from others. Make one `static` per type.
pub struct PernetSlot {
    /// Index of the area in each namespace, written by the namespace core.
    id: AtomicU32,
    /// Whether every namespace has its area.
    ready: AtomicBool,
}

impl PernetSlot {
    /// A slot without registration.
    pub const fn new() -> Self {
        Self {
            id: AtomicU32::new(0),
            ready: AtomicBool::new(false),
        }
    }
}

impl Default for PernetSlot {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps a [`PerNet`] type in every namespace, those that exist and those made later.
///
/// # Invariants
///
/// `ops` is registered.
#[pin_data(PinnedDrop)]
pub struct PernetRegistration<T: PerNet> {
    #[pin]
    ops: Opaque<sys::pernet_operations>,
    _type: PhantomData<T>,
}

// SAFETY: The registration may be dropped on any thread.
unsafe impl<T: PerNet> Send for PernetRegistration<T> {}
// SAFETY: There are no methods that take `&self`.
unsafe impl<T: PerNet> Sync for PernetRegistration<T> {}

impl<T: PerNet> PernetRegistration<T> {
    /// Registers `T`; [`PerNet::new`] is called for each existing namespace before this returns.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// What `T::new` fails with, `EBUSY` if `T` is registered already.
    pub fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            ops <- Opaque::try_ffi_init(move |ops: *mut sys::pernet_operations| {
                let slot = T::slot();
                if slot.ready.load(Ordering::Relaxed) {
                    return Err(EBUSY);
                }
                let value = sys::pernet_operations {
                    init: Some(init::<T>),
                    pre_exit: Some(pre_exit::<T>),
                    exit: Some(exit::<T>),
                    id: slot.id.as_ptr(),
                    size: size_of::<Area<T>>(),
                    ..pin_init::zeroed()
                };
                // SAFETY: `ops` is valid for writing.
                unsafe { ops.write(value) };
                // SAFETY: `ops` is pinned and stays until `drop` unregisters it.
                to_result(unsafe { sys::register_pernet_subsys(ops) })?;
                slot.ready.store(true, Ordering::Release);
                tcp_linger::watch();
                Ok(())
            }),
            _type: PhantomData,
        })
    }

    /// The state of `net`.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` if there is no registration or the namespace is going away.
    pub fn get(net: &Net) -> Result<Arc<T>> {
        let slot = T::slot();
        let guard = rcu::Guard::new();
        if !slot.ready.load(Ordering::Acquire) {
            return Err(ENETDOWN);
        }
        let id = slot.id.load(Ordering::Relaxed);
        // SAFETY: `id` is a registered index and the namespace is alive.
        let area: *mut Area<T> = unsafe { sys::smc_rs_helper_net_generic(net.as_ptr(), id) }.cast();
        if area.is_null() {
            return Err(ENETDOWN);
        }
        // SAFETY: The area lives as long as the registration and the namespace do; it is freed a
        // grace period after `pre_exit` at the earliest.
        let state = unsafe { (*area).0.load(Ordering::Acquire) };
        if state.is_null() {
            return Err(ENETDOWN);
        }
        // SAFETY: `state` came from `Arc::into_raw`; the reference in the area is dropped a grace
        // period after the pointer was cleared, hence not before `guard` is gone.
        let found = unsafe { kernel::sync::ArcBorrow::from_raw(state) };
        let found: Arc<T> = found.into();
        drop(guard);
        Ok(found)
    }
}

#[pinned_drop]
impl<T: PerNet> PinnedDrop for PernetRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        tcp_linger::unwatch();
        T::slot().ready.store(false, Ordering::Release);
        // SAFETY: By the type invariant `ops` is registered.
        unsafe { sys::unregister_pernet_subsys(self.ops.get()) };
        tcp_linger::settle();
    }
}

/// What a namespace holds per registration: the state, and the state on its way out.
#[repr(C)]
struct Area<T>(AtomicPtr<T>, AtomicPtr<T>);

/// The area of `T` in `net`. Null if there is none.
///
/// # Safety
///
/// Only from a callback of the registration of `T`.
unsafe fn area<T: PerNet>(net: *mut sys::net) -> *mut Area<T> {
    let id = T::slot().id.load(Ordering::Relaxed);
    // SAFETY: `id` is the registered index, the core passes a live namespace.
    unsafe { sys::smc_rs_helper_net_generic(net, id) }.cast()
}

/// # Safety
///
/// To be called by the namespace core only.
unsafe extern "C" fn init<T: PerNet>(net: *mut sys::net) -> c_int {
    from_result(|| {
        // SAFETY: The core passes a live namespace.
        let state = T::new(unsafe { Net::from_raw(net) })?;
        // SAFETY: This is a callback of the registration.
        let area = unsafe { area::<T>(net) };
        // SAFETY: The core allocated the area, zeroed, before calling `init`.
        unsafe {
            (*area)
                .0
                .store(Arc::into_raw(state).cast_mut(), Ordering::Release)
        };
        Ok(0)
    })
}

/// # Safety
///
/// To be called by the namespace core only.
unsafe extern "C" fn pre_exit<T: PerNet>(net: *mut sys::net) {
    // SAFETY: This is a callback of the registration.
    let area = unsafe { area::<T>(net) };
    // SAFETY: The area exists until after `exit`.
    let area = unsafe { &*area };
    let state = area.0.swap(ptr::null_mut(), Ordering::AcqRel);
    area.1.store(state, Ordering::Release);
}

/// # Safety
///
/// To be called by the namespace core only.
unsafe extern "C" fn exit<T: PerNet>(net: *mut sys::net) {
    // SAFETY: This is a callback of the registration.
    let area = unsafe { area::<T>(net) };
    // SAFETY: The area exists until after `exit`.
    let area = unsafe { &*area };
    let state = area.1.swap(ptr::null_mut(), Ordering::AcqRel);
    if !state.is_null() {
        // SAFETY: `init` stored what `Arc::into_raw` gave; the core waited for a grace period
        // after `pre_exit` cleared the pointer, so no reader of the raw pointer is left.
        let state = unsafe { Arc::from_raw(state) };
        state.exit();
    }
    tcp_linger::net_exit(net);
}
