//! The program of README.md, which runs and is this one.
use tiny::{Context, Tensor};

fn main() -> tiny::Result<()> {
    let context = Context::new()?;
    let a = Tensor::of(&context, &[1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let rows = (&a * &a)?.sum(Some(&[-1]), false)?; // nothing is computed before it is read
    assert_eq!(rows.to_vec::<f32>()?, [5.0, 25.0]);
    Ok(())
}

#[test]
fn the_readme_s_program_does_what_it_says() -> tiny::Result<()> {
    main()
}

#[test]
fn the_readme_has_this_program() {
    let program: Vec<&str> = include_str!("../README.md")
        .lines()
        .skip_while(|line| !line.starts_with("    use tiny::"))
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .collect();
    assert!(program.len() > 5);
    assert!(include_str!("readme.rs").contains(program.join("\n").trim_end()));
}
