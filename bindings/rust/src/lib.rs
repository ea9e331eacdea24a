//! tiny: an embeddable deep-learning engine, over its C ABI (include/tiny.h).
//!
//! Every function of the header is a method of [`Context`], [`Tensor`], .. or a function of this
//! crate, under its own name; the operations of a family (`TINY_EXP`, `TINY_ADD`) are methods too.
//! Handles are released by `Drop`, in any order and on any thread.  Raw functions are in [`ffi`].

mod callbacks;
mod custom;
mod dimension;
#[allow(non_camel_case_types, non_upper_case_globals, dead_code)]
#[rustfmt::skip]
pub mod ffi;
#[rustfmt::skip]
mod generated;
mod support;
mod tensor;
mod window;

pub use custom::{OperatorCall, Spec};
pub use dimension::{Dim, Size};
pub use generated::*;
pub use support::{Error, Result};
pub use tensor::Element;
pub use window::WindowBuilder;
