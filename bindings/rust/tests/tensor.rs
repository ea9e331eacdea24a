//! The crate end to end: memory in and out, operators, errors, lifetimes.

use std::sync::Arc;
use std::thread;
use tiny::{Archive, Context, Dtype, Loader, Model, Program, Run, Status, Tensor, Variable, Window};

const FAR: i64 = (1 << 31) + 7;

fn context() -> Context {
    Context::with_options(&[("threads", 1)]).unwrap()
}

#[test]
fn two_arrays_add_and_sum() -> tiny::Result<()> {
    let context = context();
    let a = Tensor::of(&context, &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let b = Tensor::of(&context, &[10f32, 20.0, 30.0], &[3])?;
    let c = (&a + &b)?;
    assert_eq!(c.shape()?, [2, 3]);
    assert_eq!(c.to_vec::<f32>()?, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
    assert_eq!(c.sum(Some(&[-1]), false)?.to_vec::<f32>()?, [66.0, 75.0]);
    assert_eq!(c.sum(Some(&[1]), true)?.shape()?, [2, 1]);
    assert_eq!(c.sum(None, false)?.to_vec::<f32>()?, [141.0]);
    assert_eq!(c.sum(Some(&[]), false)?.to_vec::<f32>()?, c.to_vec::<f32>()?);
    let doubled = a.mul(&context.scalar_float(2.0)?)?;
    assert_eq!(doubled.neg()?.to_vec::<f32>()?[5], -12.0);
    assert_eq!(tiny::concat(&[&b, &b], 0)?.shape()?, [6]);
    Ok(())
}

#[test]
fn dimensions_take_part_in_arithmetic() -> tiny::Result<()> {
    let context = context();
    let n = Variable::create(&context, "N", 2, 64)?;
    let more = (&n + 1)?;
    assert_eq!((more.range()?, more.to_string().contains('N')), ((3, 65), true));
    assert_eq!((&more - 1)?, n.as_dim()?);
    assert_eq!(((&n * 2)? , (&n / 2)?.range()?, (&n % 4)?.range()?.0), ((&n + &n.as_dim()?)?, (1, 32), 0));
    assert_eq!((more.min(8)?.range()?, more.max(&more)?), ((3, 8), more.clone()));
    let x = context.input(Dtype::FLOAT32, &[n.dim()?, 4])?;
    let double = tiny::concat(&[&x, &x], 0)?;
    assert_eq!(double.dims()?[0], (&x.dims()?[0] * 2)?);
    let ones = context.full(Dtype::FLOAT32, &[more.number()], 1.0)?;
    let run = Run::create(&Program::compile(&[&x], &[&ones])?)?;
    run.set_input(0, &Tensor::of(&context, &[0f32; 12], &[3, 4])?)?;
    run.execute()?;
    assert_eq!(run.output_shape(0)?, [4]);
    assert_eq!(run.dim((&n * 5)?.number())?, 15);
    for wrong in [more.number() + 1, more.number().wrapping_mul(2), -more.number(), more.number() / 2] {
        let error = context.full(Dtype::FLOAT32, &[wrong], 1.0).err().unwrap();
        assert!(error.message.contains("no dimension of this context"), "{error}");
    }
    let other = Variable::create(&Context::with_options(&[])?, "N", 2, 64)?;
    assert!((&n + &other.as_dim()?).is_err());
    Ok(())
}

#[test]
fn windows_are_built_in_one_expression() -> tiny::Result<()> {
    let context = context();
    let x = Tensor::of(&context, &[1f32, 2.0, 3.0, 4.0, 5.0], &[1, 1, 5])?;
    let w = Tensor::of(&context, &[1f32; 3], &[1, 1, 3])?;
    assert_eq!(x.conv(&w, None, None)?.to_vec::<f32>()?, [6.0, 9.0, 12.0]);
    let same = Window::of(1).same().strides(&[2]).build()?;
    assert_eq!(x.conv(&w, None, Some(&same))?.to_vec::<f32>()?, [3.0, 9.0, 9.0]);
    let last = Window::of(1).padding(&[1], &[1]).channels_last().build()?;
    let turned = x.permute(&[0, 2, 1])?.conv(&w.permute(&[0, 2, 1])?, None, Some(&last))?;
    assert_eq!(turned.shape()?, [1, 5, 1]);
    let pool = Window::of(1).kernel(&[2]).strides(&[2]).flags(true, false).build()?;
    assert_eq!(x.max_pool(&pool)?.to_vec::<f32>()?, [2.0, 4.0, 5.0]);
    assert_eq!(x.argmax(-1, true, true)?.shape()?, [1, 1, 1]);
    let wrong = Window::of(1).strides(&[0]).groups(2).build().err().unwrap();
    assert!(wrong.message.contains("strides [0]"), "{wrong}");
    Ok(())
}

#[test]
fn a_view_with_negative_stride_is_wrapped_without_a_copy() -> tiny::Result<()> {
    let context = context();
    let reversed = Tensor::wrap(&context, vec![1f32, 2.0, 3.0, 4.0], &[4], &[-1], 3)?;
    assert_eq!(reversed.strides()?, [-1]);
    let ones = Tensor::of(&context, &[1f32; 4], &[4])?;
    assert_eq!((&reversed + &ones)?.to_vec::<f32>()?, [5.0, 4.0, 3.0, 2.0]);
    assert!(Tensor::wrap(&context, vec![1f32; 4], &[5], &[1], 0).is_err());
    assert!(Tensor::wrap(&context, vec![1f32; 4], &[4], &[-1], 2).is_err());
    let flipped = Tensor::of(&context, &[1i64, 2, 3], &[3])?.flip(&[0])?;
    assert_eq!(flipped.to_vec::<i64>()?, [3, 2, 1]);
    Ok(())
}

#[test]
fn dimensions_above_two_to_the_31_survive() -> tiny::Result<()> {
    let context = context();
    let far = Tensor::of(&context, &[5i64], &[1])?.expand(&[FAR])?;
    assert_eq!(far.shape()?, [FAR]);
    assert_eq!(far.numel()?, FAR);
    assert_eq!(far.slice(&[FAR - 2], &[FAR], None)?.to_vec::<i64>()?, [5, 5]);
    assert!(far.as_strided(&[1, 1], &[1], 0).is_err());
    Ok(())
}

#[test]
fn a_file_holds_tensors_by_name() -> tiny::Result<()> {
    let context = context();
    let path = std::env::temp_dir().join(format!("tiny_{}.safetensors", std::process::id()));
    let path = path.to_str().unwrap();
    let archive = Archive::create(&context)?;
    archive.set("a", &Tensor::of(&context, &[1f32, 2.0], &[2])?)?;
    archive.set("b", &Tensor::of(&context, &[FAR], &[1])?)?;
    archive.save(path)?;
    let back = Archive::load(&context, path)?;
    std::fs::remove_file(path).unwrap();
    assert_eq!((back.count()?, back.name(0)?), (2, archive.name(1)?));
    assert_eq!(back.get("a")?.to_vec::<f32>()?, [1.0, 2.0]);
    assert_eq!(back.get("b")?.to_vec::<i64>()?, [FAR]);
    let error = back.get("c").expect_err("no such name");
    assert!(error.message.contains("known: "), "{error}");
    let (state, weight) = (Archive::create(&context)?, Tensor::of(&context, &[0f32, 0.0], &[2])?);
    state.set("a", &weight)?;
    let error = state.assign(&back, false).expect_err("a name that the state lacks");
    assert!(error.message.contains("target lacks \"b\""), "{error}");
    state.assign(&back, true)?;
    assert_eq!(weight.to_vec::<f32>()?, [1.0, 2.0]);
    back.remove("a")?;
    back.set_metadata("step", "7")?;
    assert_eq!((back.count()?, back.metadata("step")?.as_deref()), (1, Some("7")));
    Ok(())
}

#[test]
fn a_loader_gives_the_batches_of_an_epoch() -> tiny::Result<()> {
    let context = context();
    let x = Tensor::of(&context, &[0f32, 1.0, 2.0, 3.0, 4.0], &[5])?;
    let loader = Loader::create(&[&x], 2, 0, 1, false, false)?;
    let mut all = Vec::new();
    while loader.next()? > 0 {
        all.push(loader.tensor(0)?.to_vec::<f32>()?);
    }
    assert_eq!(all, [vec![0.0, 1.0], vec![2.0, 3.0], vec![4.0]]);
    assert_eq!((loader.batch_count()?, loader.place()?), (3, (1, 0)));
    Ok(())
}

#[test]
fn a_wrong_call_says_what_the_engine_says() -> tiny::Result<()> {
    let context = context();
    let a = Tensor::of(&context, &[1f32, 2.0], &[2])?;
    let error = a.reshape(&[3]).expect_err("two elements are not three");
    println!("the engine says: {error}");
    assert_eq!(error.status, Status::ERROR_SHAPE);
    assert!(!error.message.is_empty());
    let error = Tensor::from_data(&context, Dtype::FLOAT32, &[2, 2], &[0; 15]).err().unwrap();
    assert_eq!(error.status, Status::ERROR_SHAPE);
    assert!(Context::with_options(&[("no_such_option", 1)]).is_err());
    assert!(Context::with_options(&[("nul\0inside", 1)]).is_err());
    assert!(a.to_vec::<f64>().is_err());
    assert!(tiny::concat(&[], 0).is_err());
    Ok(())
}

#[test]
fn handles_are_dropped_in_any_order_and_on_any_thread() -> tiny::Result<()> {
    let kept = {
        let context = context();
        let a = Tensor::of(&context, &[1f32, 2.0], &[2])?;
        (&a + &a)?
    };
    assert_eq!(kept.to_vec::<f32>()?, [2.0, 4.0]);
    let context = context();
    let mut made = Vec::new();
    for i in 0..100 {
        made.push(Tensor::of(&context, &[i as f32], &[1])?);
    }
    let released = thread::spawn(move || drop(made));
    for i in 0..100 {
        let a = Tensor::of(&context, &[i as f32], &[1])?;
        assert_eq!((&a + &a)?.to_vec::<f32>()?, [2.0 * i as f32]);
    }
    released.join().unwrap();
    Ok(())
}

#[test]
fn wrapped_memory_is_dropped_once() -> tiny::Result<()> {
    let context = context();
    let data = vec![7u8; 1 << 20];
    for _ in 0..200 {
        let a = Tensor::wrap(&context, data.clone(), &[1 << 20], &[1], 0)?;
        assert_eq!(a.slice(&[3], &[5], None)?.to_vec::<u8>()?, [7, 7]);
    }
    Ok(())
}

#[test]
fn tensors_are_shared_between_threads() {
    let context = context();
    let a = Arc::new(Tensor::of(&context, &[1f32], &[1]).unwrap());
    let other = a.clone();
    let shape = thread::spawn(move || other.shape().unwrap()).join().unwrap();
    assert_eq!(shape, a.shape().unwrap());
}

#[test]
fn operators_of_models_are_functions() -> tiny::Result<()> {
    let context = context();
    let x = Tensor::of(&context, &[3f32, 1.0, 4.0], &[3])?;
    let k = Tensor::of(&context, &[2i64], &[1])?;
    let top = context.op(None, "TopK", 0, &[Some(&x), Some(&k)], Some("{\"axis\": -1}"), 2)?;
    assert_eq!(top[0].to_vec::<f32>()?, [4.0, 3.0]);
    assert_eq!(top[1].to_vec::<i64>()?, [2, 0]);
    let most = Tensor::of(&context, &[2f32], &[])?;
    let clipped = context.op(None, "Clip", 0, &[Some(&x), None, Some(&most)], None, 1)?;
    assert_eq!(clipped[0].to_vec::<f32>()?, [2.0, 1.0, 2.0]);
    let error = context.op(None, "TopKK", 0, &[Some(&x)], None, 1).err().expect("no operator");
    assert_eq!(error.status, Status::ERROR_UNSUPPORTED);
    Ok(())
}

#[test]
fn one_program_serves_every_size_of_a_variable() -> tiny::Result<()> {
    let context = Context::new()?;
    let n = Variable::create(&context, "N", 2, 64)?;
    assert_eq!((n.name()?.as_deref(), n.range()?), (Some("N"), (2, 64)));
    let x = context.input(Dtype::FLOAT32, &[n.dim()?, 2])?;
    assert_eq!(x.shape()?, [n.dim()?, 2]);
    let size = context.scalar_int((&n + 1)?.number())?;
    let program = Program::compile(&[&x], &[&x.sum(Some(&[0]), false)?, &x.mul(&size)?])?;
    let run = Run::create(&program)?;
    for rows in [3i64, 64] {
        let data: Vec<f32> = (0..2 * rows).map(|i| i as f32).collect();
        run.set_input(0, &Tensor::of(&context, &data, &[rows, 2])?)?;
        run.execute()?;
        let even = (rows * (rows - 1)) as f32;
        assert_eq!(run.output_tensor(0)?.to_vec::<f32>()?, [even, even + rows as f32]);
        assert_eq!(run.output_tensor(1)?.to_vec::<f32>()?[1], (rows + 1) as f32);
    }
    let error = run.set_variable(&n, 65).expect_err("out of its range");
    assert!(error.message.contains("\"N\" is from 2 to 64; got 65"), "{error}");
    Ok(())
}

/// y = a * a + a of three floats.
const SMALL_MODEL: &[u8] = &[
    8, 8, 58, 69, 10, 14, 10, 1, 97, 10, 1, 97, 18, 1, 115, 34, 3, 77, 117, 108, 10, 14, 10, 1, 115, 10, 1,
    97, 18, 1, 121, 34, 3, 65, 100, 100, 18, 1, 103, 90, 15, 10, 1, 97, 18, 10, 10, 8, 8, 1, 18, 4, 10, 2,
    8, 3, 98, 15, 10, 1, 121, 18, 10, 10, 8, 8, 1, 18, 4, 10, 2, 8, 3, 66, 2, 16, 13,
];

#[test]
fn eight_threads_run_one_model_and_build_in_one_context() -> tiny::Result<()> {
    let context = Context::new()?;
    let path = std::env::temp_dir().join(format!("tiny_{}.onnx", std::process::id()));
    std::fs::write(&path, SMALL_MODEL).unwrap();
    let model = Model::load(&context, path.to_str().unwrap())?;
    std::fs::remove_file(&path).unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let (context, model) = (&context, &model);
            scope.spawn(move || {
                for i in 0..30 {
                    let first = (number * 30 + i) as f32;
                    let a = Tensor::of(context, &[first, 1.0, 2.0], &[3]).unwrap();
                    let outputs = model.run(&[&a], 1).unwrap();
                    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), [first * first + first, 2.0, 6.0]);
                    let sum = (&a + &outputs[0]).unwrap();
                    assert_eq!(sum.shape().unwrap(), [3]);
                    assert_eq!(sum.to_vec::<f32>().unwrap()[2], 8.0);
                }
            });
        }
    });
    Ok(())
}

#[test]
fn eight_threads_bind_memory_to_runs_of_one_program() -> tiny::Result<()> {
    let context = context();
    let x = context.input(Dtype::FLOAT32, &[2])?;
    let program = Program::compile(&[&x], &[&x.mul(&context.scalar_float(3.0)?)?])?;
    thread::scope(|scope| {
        for number in 0..8 {
            let program = &program;
            scope.spawn(move || {
                let run = Run::create(program).unwrap();
                let (mut source, mut target) = ([0f32; 2], [0f32; 2]);
                for i in 0..50 {
                    source[1] = (number + i) as f32;
                    unsafe {
                        run.bind_input(0, &source).unwrap();
                        run.bind_output(0, Some(&mut target)).unwrap();
                    }
                    run.execute().unwrap();
                    assert_eq!(target, [0.0, 3.0 * (number + i) as f32]);
                }
            });
        }
    });
    Ok(())
}

#[test]
fn a_run_reads_and_writes_memory_of_the_caller() -> tiny::Result<()> {
    let context = context();
    let x = context.input(Dtype::FLOAT32, &[2])?;
    let run = Run::create(&Program::compile(&[&x], &[&x.mul(&context.scalar_float(3.0)?)?])?)?;
    let mut source = vec![1f32, 2.0];
    let mut target = vec![0f32; 2];
    unsafe {
        run.bind_input(0, &source)?;
        run.bind_output(0, Some(&mut target))?;
    }
    run.execute()?;
    assert_eq!(target, [3.0, 6.0]);
    source[0] = 5.0;
    run.execute()?;
    assert_eq!(target, [15.0, 6.0]);
    let error = unsafe { run.bind_input(0, &[1f32; 3]) }.expect_err("another size");
    assert!(error.message.contains("has 8 bytes; got 12"), "{error}");
    unsafe {
        run.bind_input(0, &source)?;
        run.bind_output::<f32>(0, None)?;
    }
    run.execute()?;
    assert_eq!(run.output_tensor(0)?.to_vec::<f32>()?, [15.0, 6.0]);
    Ok(())
}
