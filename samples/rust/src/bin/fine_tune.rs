//! Gives an imported model a new last layer, which learns what the model was not made for.
//!
//!     fine_tune MODEL DATA_DIR
//!
//! MODEL is samples/fashion/fashion.onnx after samples/python/add_features.py: its outputs are ten
//! probabilities, and the features that its last layer makes them of.  DATA_DIR holds Fashion-MNIST
//! (Debian's package dataset-fashion-mnist puts it in /usr/share/datasets/fashion-mnist).  The model
//! has only seen clothes the right way up; here they stand on their heads.  Prints the accuracy of
//! the model as it is, and with a new last layer that has learnt from 2,000 such pictures; all other
//! layers stay as they are.  Exit status: 0 done, 1 something failed, 2 wrong usage.
use std::process::ExitCode;

use tiny::{
    Context, Dtype, Loader, Model, Module, Optimizer, OptimizerKind, Program, Reduction, Result, Run,
    Tensor,
};

const BATCH: i64 = 100;
const SIDE: i64 = 28;
const CLASSES: i64 = 10;
const PICTURES: i64 = 2000;
const EPOCHS: usize = 5;

/// Batches of the first pictures of a file, upside down, and their classes.
fn load(context: &Context, folder: &str, name: &str, shuffle: bool) -> Result<Loader> {
    let file = |kind: &str| Tensor::load(context, &format!("{folder}/{name}-{kind}-ubyte.gz"));
    let pictures = file("images-idx3")?.slice(&[0, 0, 0], &[PICTURES, SIDE, SIDE], None)?;
    let classes = file("labels-idx1")?.slice(&[0], &[PICTURES], None)?;
    Loader::create(&[&pictures.flip(&[1])?, &classes], BATCH, 1, 2, shuffle, false)
}

/// One execution for each batch of an epoch: output 0 of each.
fn epoch(run: &Run, loader: &Loader) -> Result<Vec<Tensor>> {
    let mut outputs = Vec::new();
    while loader.next()? > 0 {
        run.set_input(0, &loader.tensor(0)?)?;
        run.set_input(1, &loader.tensor(1)?)?;
        run.execute()?;
        outputs.push(run.output_tensor(0)?);
    }
    Ok(outputs)
}

fn accuracy(x: &Tensor, y: &Tensor, scores: &Tensor, loader: &Loader) -> Result<f64> {
    let hits = scores.argmax(1, false, false)?.eq(&y.cast(Dtype::INT64)?)?;
    let right = hits.cast(Dtype::INT64)?.sum(None, false)?;
    let run = Run::create(&Program::compile(&[x, y], &[&right])?)?;
    let mut all = 0;
    for hits in epoch(&run, loader)? {
        all += hits.to_vec::<i64>()?[0];
    }
    Ok(all as f64 / PICTURES as f64)
}

fn train(path: &str, folder: &str) -> Result<()> {
    let context = Context::new()?;
    let training = load(&context, folder, "train", true)?;
    let testing = load(&context, folder, "t10k", false)?;

    // The model becomes a part of the graph: its outputs are functions of x like any other.
    let model = Model::load(&context, path)?;
    let x = context.input(Dtype::UINT8, &[BATCH, SIDE, SIDE])?;
    let y = context.input(Dtype::UINT8, &[BATCH])?;
    let outputs = model.apply(&[&x], 2)?;
    let (shares, features) = (&outputs[0], &outputs[1]);
    println!("before: accuracy {:.4}", accuracy(&x, &y, shares, &testing)?);

    // A new last layer.  Its parameters alone are given to the optimiser: the model is frozen.
    let module = Module::create(&context, 1)?;
    let logits = module.linear("head", features, CLASSES, false)?;
    let (weight, bias) = (module.parameter_at(0)?, module.parameter_at(1)?);
    let optimizer = Optimizer::create(&context, OptimizerKind::ADAM)?;
    optimizer.add(&[&weight, &bias])?;
    optimizer.set(0, "lr", 3e-3)?;

    // A step, the model's features included, is one program; it writes the parameters.
    let loss = logits.cross_entropy(&y.cast(Dtype::INT64)?, None, -100, 0.0, Reduction::MEAN)?;
    let gradients = tiny::gradient(&[&loss], &[&weight, &bias], &[], false)?;
    optimizer.step(&[Some(&gradients[0]), Some(&gradients[1])], None)?;
    let step = Run::create(&Program::compile(&[&x, &y], &[&loss, &weight, &bias])?)?;
    for number in 1..=EPOCHS {
        let mut losses = Vec::new();
        for loss in epoch(&step, &training)? {
            losses.push(loss.to_vec::<f32>()?[0]);
        }
        println!("epoch {number}: loss {:.4}", losses.iter().sum::<f32>() / losses.len() as f32);
    }
    let answer = module.linear("head", features, CLASSES, false)?;
    println!("after: accuracy {:.4}", accuracy(&x, &y, &answer, &testing)?);
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() != 2 {
        eprintln!("usage: fine_tune MODEL DATA_DIR");
        return ExitCode::from(2);
    }
    match train(&arguments[0], &arguments[1]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fine_tune: {error}");
            ExitCode::FAILURE
        }
    }
}
