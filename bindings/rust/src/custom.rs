//! Operators whose functions are closures, for graphs and for ONNX models.

use crate::support::{c_text, check, text};
use crate::{ffi, Context, Dtype, Element, Result};
use std::ffi::CString;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::{ptr, slice};

/// What a tensor is without its elements.  A dimension that runs bind is a number to be passed on as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub dtype: Dtype,
    pub shape: Vec<i64>,
}

/// One call of an operator while it runs: memory of inputs and outputs, row-major.
pub struct OperatorCall<'a> {
    raw: &'a mut ffi::tiny_custom_call,
}

impl OperatorCall<'_> {
    /// A JSON object.
    pub fn attributes(&self) -> String {
        unsafe { text(ffi::tiny_custom_call_attributes(self.raw)) }.unwrap_or_default()
    }

    /// None for an input that is left out, or not there.
    pub fn input(&self, index: usize) -> Option<Spec> {
        let mut rank = 0;
        unsafe {
            let dtype = ffi::tiny_custom_call_input_dtype(self.raw, index);
            let dims = ffi::tiny_custom_call_input_shape(self.raw, index, &mut rank);
            spec(dtype, dims, rank)
        }
    }

    pub fn output(&self, index: usize) -> Option<Spec> {
        let mut rank = 0;
        unsafe {
            let dtype = ffi::tiny_custom_call_output_dtype(self.raw, index);
            let dims = ffi::tiny_custom_call_output_shape(self.raw, index, &mut rank);
            spec(dtype, dims, rank)
        }
    }

    /// The elements; none of an input that is left out or of another dtype.
    pub fn elements<T: Element>(&self, index: usize) -> &[T] {
        let length = length_of::<T>(self.input(index));
        let data = unsafe { ffi::tiny_custom_call_input_data(self.raw, index) } as *const T;
        if data.is_null() {
            return &[];
        }
        unsafe { slice::from_raw_parts(data, length) }
    }

    /// The memory of an output, all of which is to be written; none for another dtype.
    pub fn elements_mut<T: Element>(&mut self, index: usize) -> &mut [T] {
        let length = length_of::<T>(self.output(index));
        let data = unsafe { ffi::tiny_custom_call_output_data(self.raw, index) } as *mut T;
        if data.is_null() {
            return &mut [];
        }
        unsafe { slice::from_raw_parts_mut(data, length) }
    }
}

unsafe fn spec(dtype: i32, dims: *const i64, rank: usize) -> Option<Spec> {
    if dtype == 0 {
        return None;
    }
    let shape = if rank == 0 { Vec::new() } else { slice::from_raw_parts(dims, rank).to_vec() };
    Some(Spec { dtype: Dtype(dtype), shape })
}

fn length_of<T: Element>(spec: Option<Spec>) -> usize {
    match spec {
        Some(spec) if spec.dtype == T::DTYPE => spec.shape.iter().product::<i64>() as usize,
        _ => 0,
    }
}

struct Functions<I, R, G> {
    infer: I,
    run: R,
    gradient: Option<G>,
}

type NoGradient = fn(&mut OperatorCall) -> std::result::Result<(), String>;

/// A failure's text goes to the caller; a panic is one.
fn finish(call: *mut ffi::tiny_custom_call, result: std::thread::Result<std::result::Result<(), String>>) -> i32 {
    let message = match result {
        Ok(Ok(())) => return 0,
        Ok(Err(message)) => message,
        Err(_) => "the function panicked".to_string(),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    unsafe { ffi::tiny_custom_call_set_error(call, message.as_ptr()) };
    ffi::TINY_ERROR_INVALID_ARGUMENT as i32
}

unsafe extern "C" fn call_infer<I, R, G>(user: *mut c_void, raw: *mut ffi::tiny_custom_call) -> i32
where
    I: Fn(&str, &[Option<Spec>], usize) -> std::result::Result<Vec<Spec>, String>,
{
    let functions = &*(user as *const Functions<I, R, G>);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let call = OperatorCall { raw: &mut *raw };
        let inputs: Vec<_> =
            (0..ffi::tiny_custom_call_input_count(raw)).map(|i| call.input(i)).collect();
        let count = ffi::tiny_custom_call_output_count(raw);
        let specs = (functions.infer)(&call.attributes(), &inputs, count)?;
        for (index, spec) in specs.iter().take(count).enumerate() {
            let (dims, rank) = (spec.shape.as_ptr(), spec.shape.len());
            let status = ffi::tiny_custom_call_set_output(raw, index, spec.dtype.0, dims, rank);
            check(status).map_err(|error| error.message)?;
        }
        Ok(())
    }));
    finish(raw, result)
}

unsafe extern "C" fn call_run<I, R, G>(user: *mut c_void, raw: *mut ffi::tiny_custom_call) -> i32
where
    R: Fn(&mut OperatorCall) -> std::result::Result<(), String>,
{
    let functions = &*(user as *const Functions<I, R, G>);
    let result =
        catch_unwind(AssertUnwindSafe(|| (functions.run)(&mut OperatorCall { raw: &mut *raw })));
    finish(raw, result)
}

unsafe extern "C" fn call_gradient<I, R, G>(user: *mut c_void, raw: *mut ffi::tiny_custom_call) -> i32
where
    G: Fn(&mut OperatorCall) -> std::result::Result<(), String>,
{
    let functions = &*(user as *const Functions<I, R, G>);
    let result = catch_unwind(AssertUnwindSafe(|| match &functions.gradient {
        Some(gradient) => gradient(&mut OperatorCall { raw: &mut *raw }),
        None => Err("there is no gradient".to_string()),
    }));
    finish(raw, result)
}

unsafe extern "C" fn drop_functions<I, R, G>(user: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(user as *mut Functions<I, R, G>))));
}

impl Context {
    /// From now on graphs (`op`) and models of this context know the operator `name` of `domain`.
    /// `infer(attributes, inputs, count)` says what its first `count` outputs are, while graphs are
    /// built; `run(call)` computes them at each execution, on the thread that executes, maybe on
    /// several at once.  Neither may use the context; the text of an `Err` is the message of the
    /// call that builds or executes.
    pub fn add_operator<I, R>(&self, domain: &str, name: &str, infer: I, run: R) -> Result<()>
    where
        I: Fn(&str, &[Option<Spec>], usize) -> std::result::Result<Vec<Spec>, String>
            + Send + Sync + 'static,
        R: Fn(&mut OperatorCall) -> std::result::Result<(), String> + Send + Sync + 'static,
    {
        self.add_functions(domain, name, Functions { infer, run, gradient: None::<NoGradient> })
    }

    /// The same with a gradient (`tiny::gradient`): its inputs are those of the operator, then its
    /// outputs, then what reached each output (left out where nothing did); its outputs are the
    /// gradients of those inputs that are floats.
    pub fn add_operator_with_gradient<I, R, G>(
        &self, domain: &str, name: &str, infer: I, run: R, gradient: G,
    ) -> Result<()>
    where
        I: Fn(&str, &[Option<Spec>], usize) -> std::result::Result<Vec<Spec>, String>
            + Send + Sync + 'static,
        R: Fn(&mut OperatorCall) -> std::result::Result<(), String> + Send + Sync + 'static,
        G: Fn(&mut OperatorCall) -> std::result::Result<(), String> + Send + Sync + 'static,
    {
        self.add_functions(domain, name, Functions { infer, run, gradient: Some(gradient) })
    }

    fn add_functions<I, R, G>(&self, domain: &str, name: &str, functions: Functions<I, R, G>) -> Result<()>
    where
        I: Fn(&str, &[Option<Spec>], usize) -> std::result::Result<Vec<Spec>, String>
            + Send + Sync + 'static,
        R: Fn(&mut OperatorCall) -> std::result::Result<(), String> + Send + Sync + 'static,
        G: Fn(&mut OperatorCall) -> std::result::Result<(), String> + Send + Sync + 'static,
    {
        let has_gradient = functions.gradient.is_some();
        let (domain, name) = (c_text(Some(domain))?, c_text(Some(name))?);
        let user = Box::into_raw(Box::new(functions)) as *mut c_void;
        let mut op = ptr::null_mut();
        let texts = [&domain, &name].map(|t| t.as_ref().map_or(ptr::null(), |t| t.as_ptr()));
        unsafe {
            let made = ffi::tiny_custom_op_create(
                texts[0], texts[1], user, Some(drop_functions::<I, R, G>), &mut op,
            );
            if made != 0 {
                let error = check(made);
                drop_functions::<I, R, G>(user);
                return error;
            }
            ffi::tiny_custom_op_set_infer(op, Some(call_infer::<I, R, G>));
            ffi::tiny_custom_op_set_run(op, Some(call_run::<I, R, G>));
            if has_gradient {
                ffi::tiny_custom_op_set_gradient(op, Some(call_gradient::<I, R, G>));
            }
            let added = check(ffi::tiny_context_add_custom_op(self.raw.as_ptr(), op));
            ffi::tiny_custom_op_release(op);
            added
        }
    }
}

