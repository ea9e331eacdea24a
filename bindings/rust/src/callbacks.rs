//! Closures that the library calls: what it tells, how far it is, its memory, its threads.
//!
//! They are called from any thread and may not use the context that calls them.  A panic in one ends
//! there: what it was to do counts as not done, and work whose progress was told ends.  Each is kept for as long as something made with the
//! options may call it.

use crate::support::{check, text};
use crate::{ffi, Options, Result};
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

struct Allocator<A, R> {
    allocate: A,
    release: R,
}

unsafe extern "C" fn drop_closure<F>(user: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(user as *mut F))));
}

unsafe extern "C" fn call_log<F: Fn(&str)>(user: *mut c_void, line: *const c_char) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        (*(user as *const F))(&text(line).unwrap_or_default())
    }));
}

unsafe extern "C" fn call_progress<F: Fn(&str, i64, i64) -> bool>(
    user: *mut c_void, what: *const c_char, done: i64, total: i64,
) -> i32 {
    catch_unwind(AssertUnwindSafe(|| {
        (*(user as *const F))(&text(what).unwrap_or_default(), done, total)
    }))
    .unwrap_or(true) as i32
}

unsafe extern "C" fn call_poll<F: Fn() -> bool>(user: *mut c_void) -> i32 {
    catch_unwind(AssertUnwindSafe(|| (*(user as *const F))())).unwrap_or(true) as i32
}

unsafe extern "C" fn call_allocate<A, R>(
    user: *mut c_void, bytes: usize, alignment: usize,
) -> *mut c_void
where
    A: Fn(usize, usize) -> *mut c_void,
{
    let closures = &*(user as *const Allocator<A, R>);
    catch_unwind(AssertUnwindSafe(|| (closures.allocate)(bytes, alignment)))
        .unwrap_or(ptr::null_mut())
}

unsafe extern "C" fn call_release<A, R>(
    user: *mut c_void, memory: *mut c_void, bytes: usize, alignment: usize,
) where
    R: Fn(*mut c_void, usize, usize),
{
    let closures = &*(user as *const Allocator<A, R>);
    let _ = catch_unwind(AssertUnwindSafe(|| (closures.release)(memory, bytes, alignment)));
}

type Task = unsafe extern "C" fn(data: *mut c_void, index: usize);

/// A kernel's tasks, which any thread may do.
struct Job {
    task: Task,
    data: *mut c_void,
}
unsafe impl Sync for Job {}

unsafe extern "C" fn call_pool<F>(
    user: *mut c_void, task: Option<Task>, data: *mut c_void, count: usize,
) where
    F: Fn(&(dyn Fn(usize) + Sync), usize),
{
    let Some(task) = task else { return };
    let job = Job { task, data };
    let job = &job;
    let call = move |index: usize| unsafe { (job.task)(job.data, index) };
    let _ = catch_unwind(AssertUnwindSafe(|| (*(user as *const F))(&call, count)));
}

impl Options {
    /// The library's reference to the closure, which it drops.
    fn keep<F>(&self, closure: F) -> Result<*mut c_void> {
        let user = Box::into_raw(Box::new(closure)) as *mut c_void;
        let status = unsafe {
            ffi::tiny_options_add_deleter(self.raw.as_ptr(), Some(drop_closure::<F>), user)
        };
        if status != 0 {
            unsafe { drop_closure::<F>(user) };
        }
        check(status)?;
        Ok(user)
    }

    /// What "debug" asks for goes to `log`, whole lines, instead of to stderr.
    pub fn set_log<F>(&self, log: F) -> Result<()>
    where
        F: Fn(&str) + Send + Sync + 'static,
    {
        let user = self.keep(log)?;
        check(unsafe { ffi::tiny_options_set_log(self.raw.as_ptr(), Some(call_log::<F>), user) })
    }

    /// `progress(what, done, total)` is called between kernels that are compiled and candidates that a
    /// search tries, by the thread that builds; true ends the call with `ERROR_CANCELLED`.
    pub fn set_progress<F>(&self, progress: F) -> Result<()>
    where
        F: Fn(&str, i64, i64) -> bool + Send + Sync + 'static,
    {
        let user = self.keep(progress)?;
        check(unsafe {
            ffi::tiny_options_set_progress(self.raw.as_ptr(), Some(call_progress::<F>), user)
        })
    }

    /// `poll()` is called every few milliseconds in calls that build and in executions, by the thread that
    /// called; true ends the call with `ERROR_CANCELLED`, in the middle of kernels too.
    pub fn set_poll<F>(&self, poll: F) -> Result<()>
    where
        F: Fn() -> bool + Send + Sync + 'static,
    {
        let user = self.keep(poll)?;
        check(unsafe { ffi::tiny_options_set_poll(self.raw.as_ptr(), Some(call_poll::<F>), user) })
    }

    /// Memory of tensors comes from `allocate(bytes, alignment)` and goes back to
    /// `release(memory, bytes, alignment)`.
    ///
    /// # Safety
    /// What `allocate` gives is NULL, or that many bytes, so aligned, that nothing else uses until
    /// `release` gets them.
    pub unsafe fn set_allocator<A, R>(&self, allocate: A, release: R) -> Result<()>
    where
        A: Fn(usize, usize) -> *mut c_void + Send + Sync + 'static,
        R: Fn(*mut c_void, usize, usize) + Send + Sync + 'static,
    {
        let user = self.keep(Allocator { allocate, release })?;
        let (take, give) = (call_allocate::<A, R>, call_release::<A, R>);
        check(ffi::tiny_options_set_allocator(self.raw.as_ptr(), Some(take), Some(give), user))
    }

    /// Kernels that are split run on the caller's threads: `run(task, count)` calls `task(i)` once for
    /// each i below `count`, on any threads, and returns when all have returned.
    pub fn set_thread_pool<F>(&self, run: F) -> Result<()>
    where
        F: Fn(&(dyn Fn(usize) + Sync), usize) + Send + Sync + 'static,
    {
        let user = self.keep(run)?;
        check(unsafe {
            ffi::tiny_options_set_thread_pool(self.raw.as_ptr(), Some(call_pool::<F>), user)
        })
    }
}
