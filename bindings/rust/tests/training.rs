//! A straight line that is found by steps of an optimiser, one by one and by a program.
use tiny::{Context, Dtype, Generator, Module, Optimizer, OptimizerKind, Program, Run, Tensor};

#[test]
fn a_line_is_found() -> tiny::Result<()> {
    let context = Context::new()?;
    let x = context.random_key(1)?.random_uniform(Dtype::FLOAT32, &[32])?;
    let y = (&(&x * &context.scalar_float(3.0)?)? + &context.scalar_float(0.5)?)?;
    let slope = Tensor::of(&context, &[0f32], &[])?;
    let offset = Tensor::of(&context, &[0f32], &[])?;
    let optimizer = Optimizer::create(&context, OptimizerKind::SGD)?;
    optimizer.add(&[&slope, &offset])?;
    optimizer.set(0, "momentum", 0.9)?;
    optimizer.set(0, "lr", 0.1)?;

    let (inputs, wanted) =
        (context.input(Dtype::FLOAT32, &[32])?, context.input(Dtype::FLOAT32, &[32])?);
    let error = (&(&(&slope * &inputs)? + &offset)? - &wanted)?;
    let loss = (&error * &error)?.mean(None, false)?;
    let gradients = tiny::gradient(&[&loss], &[&slope, &offset], &[], false)?;
    optimizer.step(&[Some(&gradients[0]), Some(&gradients[1])], None)?;
    let program = Program::compile(&[&inputs, &wanted], &[&loss, &slope, &offset])?;
    let run = Run::create(&program)?;
    run.set_input(0, &x)?;
    run.set_input(1, &y)?;
    for _ in 0..300 {
        run.execute()?;
    }
    assert!((slope.to_vec::<f32>()?[0] - 3.0).abs() < 1e-2);
    assert!((offset.to_vec::<f32>()?[0] - 0.5).abs() < 1e-2);
    assert_eq!(optimizer.state_name(1)?.as_deref(), Some("momentum_buffer.0"));
    assert_eq!(optimizer.state_count()?, 3);

    let key = context.random_key(7)?;
    assert!(key.dropout(&x, 1.0)?.to_vec::<f32>()?.iter().all(|v| *v == 0.0));
    let squares = (&slope * &slope)?.recompute(&[&slope])?;
    let both = (&squares * &slope.detach()?)?;
    let of_slope = tiny::gradient(&[&both], &[&slope], &[], false)?[0].to_vec::<f32>()?[0];
    let at = slope.to_vec::<f32>()?[0];
    assert!((of_slope - 2.0 * at * at).abs() < 1e-4);
    let scaler = tiny::LossScaler::create(&context, 1024.0, 2)?;
    let scaled = tiny::gradient(&[&scaler.scale(&(&slope * &slope)?)?], &[&slope], &[], false)?;
    let unscaled = scaler.unscale(&[&scaled[0]])?[0].to_vec::<f32>()?[0];
    assert!((unscaled - 2.0 * at).abs() < 1e-4);
    assert_eq!(scaler.skip()?.cast(Dtype::FLOAT32)?.to_vec::<f32>()?[0], 0.0);
    let plateau = tiny::Plateau::create(1.0, 0.5, 0, 0.0, 0, 0.0)?;
    assert_eq!((plateau.next(1.0)?, plateau.next(1.0)?), (1.0, 0.5));
    let error = optimizer.set(0, "momentun", 0.5).expect_err("no such setting");
    assert!(error.message.contains("did you mean \"momentum\""), "{error}");
    Ok(())
}

#[test]
fn layers_share_what_has_their_name() -> tiny::Result<()> {
    let context = Context::new()?;
    let module = Module::create(&context, 1)?;
    let x = context.random_key(2)?.random_normal(Dtype::FLOAT32, &[4, 3])?;
    let first = module.linear("fc", &x, 2, false)?;
    let again = module.linear("fc", &x, 2, false)?;
    assert_eq!(first.to_vec::<f32>()?, again.to_vec::<f32>()?);
    assert_eq!(module.parameter_count()?, 2);
    assert_eq!(module.parameter_name(0)?.as_deref(), Some("fc.weight"));
    let y = module.child("block")?.batch_norm("bn", &first, 0.1, 1e-5, false)?;
    tiny::realize(&[&y])?;
    let state = module.state()?;
    assert_eq!(state.get("block.bn.num_batches_tracked")?.to_vec::<i64>()?, [1]);
    let error = module.linear("fc", &x, 5, false).expect_err("another shape");
    assert!(error.message.contains("fc.weight"), "{error}");
    let numbers = Generator::create(&context, 7)?;
    let one = numbers.next()?.random_uniform(Dtype::FLOAT32, &[3])?.to_vec::<f32>()?;
    let two = numbers.next()?.random_uniform(Dtype::FLOAT32, &[3])?.to_vec::<f32>()?;
    assert_ne!(one, two);
    Ok(())
}
