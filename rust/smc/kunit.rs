// SPDX-License-Identifier: GPL-2.0

//! Suites that run inside a kernel with KUnit when the module is loaded.
//!
//! The protocol crate is tested on the host in much more depth. These few show that what the kernel's
//! compiler and flags make of it works the same, and that the wrappers' idea of the kernel's
//! structures is that of its C compiler. The macro puts static tables into the module, which takes
//! the unsafe code that the layers above the wrappers have none of themselves.

use kernel::macros::kunit_tests;

#[allow(unsafe_code)]
#[kunit_tests(smc_rs_proto)]
mod proto {
    use smc_proto::{
        cursor::Cursor,
        ids::{
            AlertToken,
            Eid, //
        },
        lgr::ElementMap,
        rx_ring::RxRing,
        wire::cdc::{
            CdcMessage,
            ConnFlags,
            ProdFlags,
            RawCursor, //
        },
    };

    /// RFC 7609 A.4: the message of the host's golden test.
    const CDC: [u8; 44] = [
        0xfe, 0x2c, 0xff, 0xfe, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 1, 2, 0, 3, 4, 5, 0, 0, 6, 7, 0, 8,
        9, 0x0a, 0x90, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    fn message() -> CdcMessage {
        CdcMessage {
            seq: 0xfffe,
            token: AlertToken(0x0a0b_0c0d),
            prod: RawCursor {
                wrap: 0x0102,
                count: 0x0003_0405,
            },
            cons: RawCursor {
                wrap: 0x0607,
                count: 0x0008_090a,
            },
            prod_flags: ProdFlags::WRITER_BLOCKED.with(ProdFlags::CONS_UPDATE_REQUESTED),
            conn_flags: ConnFlags::SENDING_DONE,
        }
    }

    #[test]
    fn cdc_is_written_as_in_the_rfc() {
        assert!(message().emit() == CDC);
    }

    #[test]
    fn cdc_is_read_as_in_the_rfc() {
        assert!(CdcMessage::parse(&CDC) == Ok(message()));
        assert!(CdcMessage::parse(CDC.get(..43).unwrap_or(&[])).is_err());
    }

    #[test]
    fn cursors_outside_of_the_ring_are_refused() {
        let at = |count| Cursor::from_wire(RawCursor { wrap: 7, count }, 16384);
        assert!(at(16383).is_ok());
        assert!(at(16384).is_err());
        assert!(at(u32::MAX).is_err());
    }

    #[test]
    fn cursors_wrap() {
        let last = Cursor::START.advance(16383, 16384);
        let next = last.advance(1, 16384);
        assert!(next.count() == 0 && next.wrap() == 1);
        assert!(Cursor::START.distance(next, 16384) == Ok(16384));
    }

    #[test]
    fn a_peer_cannot_announce_more_than_the_ring_holds() {
        let mut ring = RxRing::new(16384);
        assert!(ring.on_peer_prod(RawCursor { wrap: 1, count: 0 }) == Ok(16384));
        assert!(ring.on_peer_prod(RawCursor { wrap: 1, count: 1 }).is_err());
        assert!(ring.consume(4) == 4);
        assert!(ring.on_peer_prod(RawCursor { wrap: 1, count: 4 }) == Ok(4));
    }

    #[test]
    fn elements_are_given_out_once() {
        let mut map = ElementMap::new(255);
        let mut given = 0;
        let mut last = None;
        while let Some(index) = map.allocate() {
            given += 1;
            last = Some(index);
        }
        assert!(given == 255);
        assert!(last.is_some_and(|index| map.release(index) && !map.release(index)));
        assert!(map.allocate() == last);
    }

    #[test]
    fn identifiers_are_padded() {
        assert!(Eid::parse(b"SMC-RS-TEST").is_ok_and(|eid| eid.text() == b"SMC-RS-TEST"));
        assert!(Eid::parse(b"-A").is_err());
        assert!(Eid::parse(&[b'A'; 33]).is_err());
    }
}

#[allow(unsafe_code)]
#[kunit_tests(smc_rs_kapi)]
mod kapi {
    use kernel::{
        page::PAGE_SIZE,
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Full,
                Relaxed, //
            },
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
        workqueue::{
            self,
            impl_has_delayed_work,
            new_delayed_work,
            DelayedWork,
            WorkItem, //
        },
    };
    use smc_kapi::{
        mem::{
            PageRun,
            Payer, //
        },
        work, //
    };

    /// Queues itself once more while it is being cancelled.
    #[pin_data]
    struct Stubborn {
        runs: Atomic<u32>,
        #[pin]
        work: DelayedWork<Stubborn>,
    }

    impl_has_delayed_work! {
        impl HasDelayedWork<Self> for Stubborn { self.work }
    }

    impl WorkItem for Stubborn {
        type Pointer = Arc<Stubborn>;

        fn run(this: Arc<Stubborn>) {
            if this.runs.fetch_add(1, Full) == 0 {
                fsleep(Delta::from_millis(50));
                work::reschedule::<_, 0>(workqueue::system(), &this, 0);
            }
        }
    }

    #[test]
    fn a_cancelled_item_gives_its_reference_back() {
        let item = Arc::pin_init(
            pin_init!(Stubborn {
                runs: Atomic::new(0),
                work <- new_delayed_work!("smc_rs_kunit"),
            }),
            GFP_KERNEL,
        );
        let Ok(item) = item else {
            return assert!(false);
        };
        assert!(!work::reschedule::<_, 0>(workqueue::system(), &item, 0));
        while item.runs.load(Relaxed) == 0 {
            fsleep(Delta::from_millis(1));
        }
        work::cancel_delayed_sync::<_, 0>(&item);
        assert!(Arc::into_unique_or_drop(item).is_some());
    }

    /// Whether a run of four pages starts with zeroes, keeps what is written across a border of
    /// pages, and stays within its bounds.
    fn works(run: Result<PageRun>) -> bool {
        const BORDER: usize = 2 * PAGE_SIZE;
        let Ok(run) = run else {
            return false;
        };
        let holds = |off, wanted: &[u8; 4]| {
            let mut found = [0xee; 4];
            run.read(off, &mut found).is_ok() && found == *wanted
        };
        run.len() == 4 * PAGE_SIZE
            && holds(0, &[0; 4])
            && holds(BORDER - 2, &[0; 4])
            && run.write(BORDER - 2, &[1, 2, 3, 4]).is_ok()
            && holds(BORDER - 2, &[1, 2, 3, 4])
            && holds(BORDER - 4, &[0, 0, 1, 2])
            && run.zero(BORDER - 1, 2).is_ok()
            && holds(BORDER - 2, &[1, 0, 0, 4])
            && run.write(4 * PAGE_SIZE - 1, &[1]).is_ok()
            && run.write(4 * PAGE_SIZE - 1, &[1, 1]).is_err()
            && run.read(4 * PAGE_SIZE, &mut [0]).is_err()
            && run.zero(1, 4 * PAGE_SIZE).is_err()
            && run.zero(usize::MAX, 2).is_err()
    }

    #[test]
    fn contiguous_pages_are_one_range() {
        assert!(works(PageRun::alloc(
            4 * PAGE_SIZE,
            GFP_KERNEL,
            None,
            &Payer::NOBODY
        )));
        assert!(PageRun::alloc(3 * PAGE_SIZE, GFP_KERNEL, None, &Payer::NOBODY).is_err());
    }

    #[test]
    fn mapped_pages_are_one_range() {
        assert!(works(PageRun::alloc_mapped(
            4 * PAGE_SIZE,
            GFP_KERNEL,
            None,
            &Payer::NOBODY
        )));
        assert!(PageRun::alloc_mapped(3 * PAGE_SIZE, GFP_KERNEL, None, &Payer::NOBODY).is_ok());
        assert!(PageRun::alloc_mapped(PAGE_SIZE + 1, GFP_KERNEL, None, &Payer::NOBODY).is_err());
        assert!(PageRun::alloc_mapped(0, GFP_KERNEL, None, &Payer::NOBODY).is_err());
    }

    #[test]
    fn structures_are_laid_out_as_in_c() {
        assert!(smc_kapi::abi::check().is_ok());
    }
}
