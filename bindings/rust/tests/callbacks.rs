//! Closures that the library calls: the log, progress, the allocator, the pool of threads.

use std::alloc::{alloc, dealloc, Layout};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tiny::{Context, Dtype, Options, Tensor};

fn total(options: &Options) -> tiny::Result<f32> {
    let context = Context::create(Some(options))?;
    let whole = context.arange(Dtype::FLOAT32, 1000)?.sum(None, false)?;
    Ok(whole.to_vec::<f32>()?[0])
}

#[test]
fn the_log_is_told_and_dropped_with_the_last_context() -> tiny::Result<()> {
    let told = Arc::new(Mutex::new(String::new()));
    let options = Options::create()?;
    options.set_int("debug", 2)?;
    let log = told.clone();
    options.set_log(move |text| log.lock().unwrap().push_str(text))?;
    assert_eq!(total(&options)?, 499500.0);
    assert!(told.lock().unwrap().ends_with('\n'));
    let context = Context::create(Some(&options))?;
    drop(options);
    assert_eq!(Arc::strong_count(&told), 2);
    drop(context);
    assert_eq!(Arc::strong_count(&told), 1);
    Ok(())
}

#[test]
fn a_log_that_panics_harms_nothing() -> tiny::Result<()> {
    let options = Options::create()?;
    options.set_int("debug", 2)?;
    options.set_log(|_| panic!("in the log"))?;
    assert_eq!(total(&options)?, 499500.0);
    Ok(())
}

#[test]
fn memory_comes_from_the_allocator_and_goes_back() -> tiny::Result<()> {
    let live = Arc::new(AtomicI64::new(0));
    let (taken, given) = (live.clone(), live.clone());
    let options = Options::create()?;
    unsafe {
        options.set_allocator(
            move |bytes, alignment| {
                taken.fetch_add(1, Ordering::SeqCst);
                alloc(Layout::from_size_align(bytes, alignment).unwrap()) as *mut _
            },
            move |memory, bytes, alignment| {
                given.fetch_sub(1, Ordering::SeqCst);
                dealloc(memory as *mut u8, Layout::from_size_align(bytes, alignment).unwrap())
            },
        )?;
    }
    let context = Context::create(Some(&options))?;
    let kept = Tensor::of(&context, &[1f32, 2.0], &[2])?;
    assert_eq!(live.load(Ordering::SeqCst), 1);
    drop((kept, context, options));
    assert_eq!(live.load(Ordering::SeqCst), 0);
    let options = Options::create()?;
    unsafe { options.set_allocator(|_, _| panic!("no memory"), |_, _, _| ())? };
    let error = total(&options).expect_err("there is no memory");
    assert_eq!(error.status, tiny::Status::ERROR_OUT_OF_MEMORY);
    Ok(())
}

#[test]
fn a_pool_of_the_callers_does_the_work() -> tiny::Result<()> {
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let options = Options::create()?;
    options.set_int("threads", 3)?;
    options.set_thread_pool(move |task, count| {
        seen.fetch_max(count, Ordering::SeqCst);
        thread::scope(|scope| {
            for index in 0..count {
                scope.spawn(move || task(index));
            }
        })
    })?;
    let context = Context::create(Some(&options))?;
    let a = context.full(Dtype::FLOAT32, &[256, 256], 2.0)?;
    let product = a.matmul(&a)?;
    assert!(product.to_vec::<f32>()?.iter().all(|&x| x == 1024.0));
    assert!((2..=3).contains(&most.load(Ordering::SeqCst)));
    Ok(())
}

#[test]
fn poll_is_asked_and_ends_the_call() -> tiny::Result<()> {
    let asked = Arc::new(AtomicUsize::new(0));
    let options = Options::create()?;
    let count = asked.clone();
    options.set_poll(move || count.fetch_add(1, Ordering::SeqCst) >= 4)?;
    let context = Context::create(Some(&options))?;
    let a = context.full(Dtype::FLOAT32, &[1 << 16, 1], 0.5)?.contiguous()?;
    let b = context.full(Dtype::FLOAT32, &[1, 1 << 22], 0.5)?.contiguous()?;
    let error = a.mul(&b)?.sum(None, false)?.to_vec::<f32>().expect_err("it is ended");
    assert_eq!(error.status, tiny::Status::ERROR_CANCELLED);
    assert_eq!(asked.load(Ordering::SeqCst), 5);
    Ok(())
}

#[test]
fn progress_is_told_and_ends_the_call() -> tiny::Result<()> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let options = Options::create()?;
    options.set_int("cache", 0)?;
    let list = told.clone();
    options.set_progress(move |what, done, total| {
        list.lock().unwrap().push((what.to_string(), done, total));
        false
    })?;
    assert_eq!(total(&options)?, 499500.0);
    let last = told.lock().unwrap().last().cloned().expect("something was compiled");
    assert!(last.0.starts_with("compile ") && last.1 == last.2 && last.2 > 0);
    for ending in [|_: &str, _, _| true, |_: &str, _, _| panic!("in the progress")] {
        options.set_progress(ending)?;
        let error = total(&options).expect_err("it is ended");
        assert_eq!(error.status, tiny::Status::ERROR_CANCELLED);
    }
    Ok(())
}

#[test]
fn an_operator_of_closures_is_a_step_of_programs() -> tiny::Result<()> {
    let context = Context::new()?;
    let alive = Arc::new(());
    let held = alive.clone();
    let first = |_: &str, inputs: &[Option<tiny::Spec>], _: usize| {
        inputs.first().cloned().flatten().map(|spec| vec![spec]).ok_or("an input is wanted".into())
    };
    context.add_operator("test", "Reverse", first, move |call| {
        let _ = &held;
        let mut elements = call.elements::<f32>(0).to_vec();
        elements.reverse();
        if call.attributes().contains("fail") {
            return Err("as it was asked to".to_string());
        }
        call.elements_mut::<f32>(0).copy_from_slice(&elements);
        Ok(())
    })?;
    let a = Tensor::of(&context, &[1f32, 2.0, 3.0], &[3])?;
    let reversed = &context.op(Some("test"), "Reverse", 0, &[Some(&a.neg()?)], None, 1)?[0];
    assert_eq!((reversed + &a)?.to_vec::<f32>()?, [-2.0, 0.0, 2.0]);
    let bad = &context.op(Some("test"), "Reverse", 0, &[Some(&a)], Some("{\"fail\": 1}"), 1)?[0];
    let error = bad.to_vec::<f32>().expect_err("it fails");
    assert!(error.message.contains("test.Reverse: as it was asked to"), "{error}");
    let error = context.op(Some("test"), "Reverse", 0, &[], None, 1).err().expect("no input");
    assert!(error.message.contains("an input is wanted"), "{error}");
    assert_eq!(Arc::strong_count(&alive), 2);
    Ok(())
}

#[test]
fn operators_with_gradients() -> tiny::Result<()> {
    let context = Context::new()?;
    let first = |_: &str, inputs: &[Option<tiny::Spec>], _: usize| {
        inputs.first().cloned().flatten().map(|spec| vec![spec]).ok_or("an input is wanted".into())
    };
    let cube = |call: &mut tiny::OperatorCall| {
        let cubes: Vec<f32> = call.elements::<f32>(0).iter().map(|v| v * v * v).collect();
        call.elements_mut::<f32>(0).copy_from_slice(&cubes);
        Ok(())
    };
    let slope = |call: &mut tiny::OperatorCall| {
        let (x, reached) = (call.elements::<f32>(0), call.elements::<f32>(2));
        let slopes: Vec<f32> = x.iter().zip(reached).map(|(x, r)| 3.0 * x * x * r).collect();
        call.elements_mut::<f32>(0).copy_from_slice(&slopes);
        Ok(())
    };
    context.add_operator("test", "Flat", first, cube)?;
    context.add_operator_with_gradient("test", "Cube", first, cube, slope)?;
    let x = Tensor::of(&context, &[1f32, 2.0, 3.0], &[3])?;
    let cubes = &context.op(Some("test"), "Cube", 0, &[Some(&x)], None, 1)?[0];
    let gradient = tiny::gradient(&[cubes], &[&x], &[&x], false)?;
    assert_eq!(gradient[0].to_vec::<f32>()?, [3.0, 24.0, 81.0]);
    let flat = &context.op(Some("test"), "Flat", 0, &[Some(&x)], None, 1)?[0];
    let error = tiny::gradient(&[flat], &[&x], &[&x], false).err().expect("it has none");
    assert!(error.message.contains("test.Flat has no gradient"), "{error}");
    Ok(())
}
