//! A straight line that is found by steps of an optimiser, one by one and by a program.
use tiny::{Context, Dtype, Optimizer, OptimizerKind, Program, Run, Tensor};

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
    let error = optimizer.set(0, "momentun", 0.5).expect_err("no such setting");
    assert!(error.message.contains("did you mean \"momentum\""), "{error}");
    Ok(())
}
