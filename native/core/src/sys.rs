//! The one module with `unsafe`: what the kernel does to a whole descriptor table, which types can't express, and calls
//! that rustix doesn't have.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::thread;

use rustix::thread::UnshareFlags;

/// A thread that only moves bytes and has been running for so long lets others have the CPU. The kernel itself would not take it away
/// before its next tick, up to 4 ms later, so what is due in one of dozens of threads would wait for that long behind each of the others.
pub const RUN_NS: u64 = 500_000;
const FIRST_AFTER_STDIO: RawFd = 3;

/// Descriptors that a thread takes along into a descriptor table of its own. They are open in both tables afterwards,
/// and each side closes its own.
#[derive(Clone, Copy, Debug)]
pub struct KeptFds<const N: usize>([RawFd; N]);

impl<const N: usize> KeptFds<N> {
    pub fn of(owned: &[OwnedFd; N]) -> Self {
        KeptFds(std::array::from_fn(|i| owned[i].as_raw_fd()))
    }

    /// Gives the calling thread a descriptor table of its own that contains these, stdin, stdout and stderr (if number 2
    /// were free, a panic message could go to the client whose socket gets it). EPERM if a seccomp filter forbids it;
    /// then nothing has changed.
    pub fn unshare(self) -> io::Result<[OwnedFd; N]> {
        // SAFETY: unshare copies the table; the descriptors of other threads stay as they are in theirs. The
        // calling thread owns no descriptor yet, so nothing it holds changes its meaning.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }?;
        let mut kept = self.0;
        kept.sort_unstable();
        let mut from = FIRST_AFTER_STDIO;
        for fd in kept {
            close_range(from, fd - 1);
            from = from.max(fd + 1);
        }
        close_range(from, RawFd::MAX);
        // SAFETY: these numbers have no other owner in the new table.
        Ok(self.0.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

/// Whether a thread may have a descriptor table of its own here.
pub fn can_unshare() -> bool {
    thread::spawn(|| KeptFds::of(&[]).unshare().is_ok()).join().unwrap_or(false)
}

/// Lowers the priority of the calling thread, which only moves bytes, below that of the event loop. When it wakes up, it waits until
/// whoever is running makes room or the kernel's next tick comes: dozens of such threads would otherwise interrupt each other every
/// 60 µs, and a burst of pings that takes one of them 2 ms would be over after 100 ms. Optional: affects latency only.
pub fn yield_to_js() {
    const NICE: i32 = 10;
    // None of it needs a privilege.
    let done = set_scheduling(|attributes| {
        attributes.policy = libc::SCHED_BATCH as u32;
        attributes.nice = NICE;
        // Whoever lets others have the CPU gives up the rest of this. Shorter ones, which it inherits from the thread of JS, would let
        // others interrupt it.
        attributes.runtime = RUN_NS;
    });
    if done.is_err() {
        // A sandbox may know this call, which is older.
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

/// Has the calling thread, which is that of JS, run soon after it wakes up: it does little, often. Optional: affects
/// latency only.
pub fn favour_js() {
    const SLICE_NS: u64 = 100_000;
    // Linux 6.12 and later. Its share of the CPU stays the same.
    let _ = set_scheduling(|attributes| attributes.runtime = SLICE_NS);
}

/// Closes the descriptors `first` to `last` of the calling thread's own table.
fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: takes three numbers and touches no memory.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if done == 0 {
        return;
    }
    // A kernel before 5.9. No descriptor is above the limit, unless it was lowered since.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let end = limit.unwrap_or(1 << 20).min(1 << 20) as RawFd;
    for fd in first..=last.min(end) {
        // SAFETY: the table is the caller's own, and nothing in it but what was kept is used any more.
        unsafe { libc::close(fd) };
    }
}

/// A second descriptor for a file that another part of the process has open under this number. EBADF if there is none.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the borrow lasts for one system call, which checks the number.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

/// Has a listening socket hold connections back until they have sent something, or for about so many seconds: they are
/// accepted together with their request, which saves a wake-up for each.
pub fn defer_accept(listener: &OwnedFd, seconds: i32) -> io::Result<()> {
    let (value, size) = (&raw const seconds, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the value is an int and outlives the call, which copies it.
    let done = unsafe { libc::setsockopt(listener.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, value.cast(), size) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Leaves the choice of a local port to connect(2), which picks one that is free for that target, rather than one that is
/// free for all targets. To be called before the socket is bound to an address.
pub fn bind_address_no_port(socket: &OwnedFd) -> io::Result<()> {
    let on: i32 = 1;
    let (value, size) = (&raw const on, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the value is an int and outlives the call, which copies it.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, value.cast(), size) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns freed memory to the system. The allocator keeps what small objects leave behind.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_memory() {
    // SAFETY: takes a number and only touches what the allocator has in its own books.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_memory() {}

/// `struct sched_attr` of sched_setattr(2), in its first version.
#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Changes how the calling thread is scheduled, unless somebody has given it a policy other than the usual one. If the kernel refuses,
/// nothing has changed.
fn set_scheduling(change: impl FnOnce(&mut SchedulingAttributes)) -> io::Result<()> {
    let mut attributes = SchedulingAttributes::default();
    let size = size_of::<SchedulingAttributes>() as u32;
    // SAFETY: the structure has the size given, and outlives the call, which fills it.
    if unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if attributes.policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.size = size;
    change(&mut attributes);
    // SAFETY: as above; the call reads it.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
