//! What the generated methods stand on: statuses to errors, slices and text to pointers.

use crate::generated::Status;
use crate::ffi;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::ptr;

/// How many numbers a list is first given room for.
pub(crate) const GUESS: usize = 16;

/// A call failed; the message is the engine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: Status,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn mistake(message: impl Into<String>) -> Error {
        Error { status: Status::ERROR_INVALID_ARGUMENT, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = unsafe { text(ffi::tiny_status_name(self.status.0)) };
        write!(out, "{}: {}", name.unwrap_or_default(), self.message)
    }
}

impl std::error::Error for Error {}

/// The error of this thread's last call, unless its status is OK.
pub(crate) fn check(status: i32) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let message = unsafe { text(ffi::tiny_last_error()) }.unwrap_or_default();
    Err(Error { status: Status(status), message })
}

/// A copy of a C string; None for NULL.
///
/// # Safety
/// `pointer` is NULL or points to a NUL-terminated string.
pub(crate) unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    Some(CStr::from_ptr(pointer).to_string_lossy().into_owned())
}

pub(crate) fn c_text(value: Option<&str>) -> Result<Option<CString>> {
    let owned = value.map(CString::new).transpose();
    owned.map_err(|_| Error::mistake("a text with a NUL character"))
}

/// The length that the lists share; those that are left out have none.
pub(crate) fn count(lists: &[Option<&[i64]>]) -> Result<usize> {
    let mut lengths = lists.iter().flatten().map(|list| list.len());
    let first = lengths.next().unwrap_or(0);
    match lengths.find(|&length| length != first) {
        Some(other) => Err(Error::mistake(format!(
            "lists of one length are wanted, not {first} and {other}"
        ))),
        None => Ok(first),
    }
}

/// The sum of the bits that are on.
pub(crate) fn flags(bits: &[(bool, u32)]) -> u32 {
    bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum()
}

pub(crate) fn at_least_one(length: usize) -> Result<()> {
    if length == 0 {
        return Err(Error::mistake("at least one tensor is wanted"));
    }
    Ok(())
}

pub(crate) fn pointer(list: Option<&[i64]>) -> *const i64 {
    list.map_or(ptr::null(), |list| list.as_ptr())
}

pub(crate) fn mut_pointer(bytes: &mut [u8]) -> *mut c_void {
    bytes.as_mut_ptr() as *mut c_void
}
