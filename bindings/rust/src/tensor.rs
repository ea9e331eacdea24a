//! What Rust users expect beside the header's functions: typed slices in and out, owned memory
//! without a copy, operators.

use crate::support::{check, pointer};
use crate::{ffi, Context, Dtype, Error, Options, Result, Run, Tensor};
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::os::raw::c_void;
use std::{fmt, mem, ptr, slice};

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that has a dtype.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($kind:ty => $dtype:ident),*) => {
        $(impl sealed::Sealed for $kind {}
          impl Element for $kind { const DTYPE: Dtype = Dtype::$dtype; })*
    };
}
elements!(i8 => INT8, i16 => INT16, i32 => INT32, i64 => INT64, u8 => UINT8, u16 => UINT16,
          u32 => UINT32, u64 => UINT64, f32 => FLOAT32, f64 => FLOAT64);

impl Context {
    /// A context with the default options.
    pub fn new() -> Result<Context> {
        Context::create(None)
    }

    /// A context with integer options, as `tiny_options_set_int` takes them.
    pub fn with_options(options: &[(&str, i64)]) -> Result<Context> {
        let settings = Options::create()?;
        for (key, value) in options {
            settings.set_int(key, *value)?;
        }
        Context::create(Some(&settings))
    }
}

/// Drops the owner of wrapped memory; called by the library, on any thread.
unsafe extern "C" fn drop_owner<T>(user: *mut c_void) {
    drop(Box::from_raw(user as *mut Vec<T>));
}

/// Whether every element of the view lies in memory of `length` elements.
fn fits(length: usize, dims: &[i64], strides: &[i64], first: usize) -> bool {
    let (mut low, mut high) = (first as i128, first as i128);
    for (dim, stride) in dims.iter().zip(strides) {
        let reach = (*dim as i128 - 1) * *stride as i128;
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    dims.contains(&0) || (low >= 0 && high < length as i128)
}

impl Tensor {
    /// A copy of `data`, row-major, in the shape `dims`.
    pub fn of<T: Element>(context: &Context, data: &[T], dims: &[i64]) -> Result<Tensor> {
        let bytes = unsafe {
            slice::from_raw_parts(data.as_ptr() as *const u8, mem::size_of_val(data))
        };
        Tensor::from_data(context, T::DTYPE, dims, bytes)
    }

    /// The vector's own memory, dropped when no tensor needs it.  Element (i0, ..) is
    /// `data[first + i0*strides[0] + ..]`.
    pub fn wrap<T: Element>(
        context: &Context,
        data: Vec<T>,
        dims: &[i64],
        strides: &[i64],
        first: usize,
    ) -> Result<Tensor> {
        if dims.len() != strides.len() {
            return Err(Error::mistake("one stride for each dimension is wanted"));
        }
        if dims.iter().any(|&dim| dim < 0) || !fits(data.len(), dims, strides, first) {
            return Err(Error::mistake(format!(
                "dims {dims:?} with strides {strides:?} from element {first} leave the {} elements",
                data.len()
            )));
        }
        let owner = Box::into_raw(Box::new(data));
        let mut out = ptr::null_mut();
        let status = unsafe {
            let start = if dims.contains(&0) { 0 } else { first };
            let memory = (*owner).as_mut_ptr().add(start) as *mut c_void;
            let (dims_at, strides_at) = (pointer(Some(dims)), pointer(Some(strides)));
            ffi::tiny_tensor_wrap(
                context.raw.as_ptr(), T::DTYPE.0, dims_at, strides_at, dims.len(), memory,
                Some(drop_owner::<T>), owner as *mut c_void, &mut out,
            )
        };
        if status != 0 {
            unsafe { drop_owner::<T>(owner as *mut c_void) };
        }
        check(status)?;
        Ok(Tensor::from_raw(out, context.clone()))
    }

    /// The elements, computed and copied row-major.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let dtype = self.dtype()?;
        if dtype != T::DTYPE {
            return Err(Error::mistake(format!("elements are {dtype:?}, not {:?}", T::DTYPE)));
        }
        let length = self.numel()? as usize;
        let mut elements: Vec<T> = Vec::with_capacity(length);
        unsafe {
            let memory = elements.as_mut_ptr() as *mut c_void;
            check(ffi::tiny_tensor_read(self.raw.as_ptr(), memory, length * mem::size_of::<T>()))?;
            elements.set_len(length);
        }
        Ok(elements)
    }
}

impl Run {
    /// From now on executions read input `index` from `data`; what changes there need not be bound again.
    ///
    /// # Safety
    /// `data` stays where it is, and nothing writes it while the run executes, until other memory or a
    /// tensor is bound to the input or the run is dropped.
    pub unsafe fn bind_input<T: Element>(&self, index: usize, data: &[T]) -> Result<()> {
        let memory = data.as_ptr() as *const c_void;
        check(ffi::tiny_run_bind_input(self.raw.as_ptr(), index, memory, mem::size_of_val(data)))
    }

    /// From now on executions write output `index` into `data`; None: into memory of the run's own again.
    ///
    /// # Safety
    /// `data` stays where it is, and nothing uses it while the run executes, until other memory or a
    /// tensor is bound to the output or the run is dropped.
    pub unsafe fn bind_output<T: Element>(&self, index: usize, data: Option<&mut [T]>) -> Result<()> {
        let (memory, bytes) = match data {
            Some(data) => (data.as_mut_ptr() as *mut c_void, mem::size_of_val(data)),
            None => (ptr::null_mut(), 0),
        };
        check(ffi::tiny_run_bind_output(self.raw.as_ptr(), index, memory, bytes))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Tensor {:?} {:?}", self.shape(), self.dtype())
    }
}

impl Add for &Tensor {
    type Output = Result<Tensor>;
    fn add(self, other: &Tensor) -> Result<Tensor> {
        Tensor::add(self, other)
    }
}

impl Sub for &Tensor {
    type Output = Result<Tensor>;
    fn sub(self, other: &Tensor) -> Result<Tensor> {
        Tensor::sub(self, other)
    }
}

impl Mul for &Tensor {
    type Output = Result<Tensor>;
    fn mul(self, other: &Tensor) -> Result<Tensor> {
        Tensor::mul(self, other)
    }
}

impl Div for &Tensor {
    type Output = Result<Tensor>;
    fn div(self, other: &Tensor) -> Result<Tensor> {
        Tensor::div(self, other)
    }
}

impl Neg for &Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
