//! Names the type of files with Magika's network.
//!
//!     identify MODEL_DIR FILE...
//!
//! MODEL_DIR holds model.onnx and config.min.json, as the Python package `magika` ships them.  Prints
//! one line `PATH: LABEL` per file, the label of the package's default mode.  Exit status: 0 done,
//! 1 the model or its configuration cannot be used, 2 wrong usage.
use std::collections::HashMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// The labels that mean text: what is left of them when the network is not sure is "txt".
const TEXT_LABELS: &str = "aidl appleplist asm asp autohotkey autoit awk batch bazel bib c clojure \
    cmake cobol coffeescript cpp cs csproj css csv dart diff dm dockerfile dxf elixir eml erb erlang \
    fortran gemfile gemspec gitattributes gitmodules go gradle groovy handlebars haskell hcl htaccess \
    html ics ignorefile ini internetshortcut ipynb java javascript jinja json jsonl julia kotlin latex \
    lisp lua m3u m4 makefile markdown matlab mht mum objectivec ocaml pascal pem perl php po \
    powershell prolog proteindb proto python r randomtxt rdf rst rtf ruby rust scala scss sgml shell \
    smali solidity sql srt stltext sum svg swift tcl textproto toml tsv twig txt typescript vba \
    vcxproj verilog vhdl vtt vue winregistry xml yaml yara zig";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The values of config.min.json by their path ("thresholds.crt"), and the labels.
struct Config {
    values: HashMap<String, String>,
    labels: Vec<String>,
    beg_size: usize,
    end_size: usize,
    block_size: usize,
    min_size: usize,
    padding: i32,
}

/// Reads the text of the configuration, a word at a time.
struct Scanner<'a> {
    rest: &'a str,
    values: HashMap<String, String>,
    labels: Vec<String>,
}

impl Scanner<'_> {
    fn next(&mut self) -> Result<char> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n', ',', ':'].as_slice());
        self.rest.chars().next().ok_or_else(|| "the configuration ends too early".into())
    }

    fn word(&mut self) -> Result<String> {
        let quoted = self.next()? == '"';
        let mut word = String::new();
        let mut chars = self.rest[usize::from(quoted)..].char_indices();
        while let Some((at, c)) = chars.next() {
            if quoted && c == '"' || !quoted && " \t\r\n,:]}".contains(c) {
                self.rest = &self.rest[at + 2 * usize::from(quoted)..];
                return Ok(word);
            }
            word.extend(if quoted && c == '\\' { chars.next().map(|next| next.1) } else { Some(c) });
        }
        Err("the configuration ends too early".into())
    }

    /// One value; objects two deep are all there are.
    fn read(&mut self, path: &str) -> Result<()> {
        match self.next()? {
            '[' => {
                self.rest = &self.rest[1..];
                while self.next()? != ']' {
                    let label = self.word()?;
                    self.labels.push(label);
                }
                self.rest = &self.rest[1..];
            }
            '{' if !path.contains('.') => {
                self.rest = &self.rest[1..];
                while self.next()? != '}' {
                    let key = self.word()?;
                    self.read(&if path.is_empty() { key } else { format!("{path}.{key}") })?;
                }
                self.rest = &self.rest[1..];
            }
            _ => {
                let value = self.word()?;
                self.values.insert(path.to_string(), value);
            }
        }
        Ok(())
    }
}

impl Config {
    fn read(path: &Path) -> Result<Config> {
        let text = fs::read_to_string(path)?;
        let mut scanner = Scanner { rest: &text, values: HashMap::new(), labels: Vec::new() };
        scanner.read("")?;
        let (values, labels) = (scanner.values, scanner.labels);
        let size = |key: &str| -> Result<usize> {
            Ok(values.get(key).ok_or_else(|| format!("no {key}"))?.parse::<usize>()?)
        };
        let mid_size = size("mid_size")?;
        let config = Config {
            beg_size: size("beg_size")?,
            end_size: size("end_size")?,
            block_size: size("block_size")?,
            min_size: size("min_file_size_for_dl")?,
            padding: size("padding_token")? as i32,
            values,
            labels,
        };
        let sizes_fit = config.min_size > 0
            && config.min_size <= config.beg_size
            && config.beg_size.max(config.end_size) <= config.block_size;
        if mid_size != 0 || !sizes_fit || config.labels.is_empty() {
            return Err("features that this program does not make".into());
        }
        Ok(config)
    }

    fn threshold(&self, label: &str) -> Result<f64> {
        let own = self.values.get(&format!("thresholds.{label}"));
        let value = own.or_else(|| self.values.get("medium_confidence_threshold"));
        Ok(value.ok_or("no medium_confidence_threshold")?.parse()?)
    }

    fn output<'a>(&'a self, label: &'a str) -> &'a str {
        self.values.get(&format!("overwrite_map.{label}")).map_or(label, |other| other)
    }
}

fn is_space(byte: &u8) -> bool {
    *byte == b' ' || (b'\t'..=b'\r').contains(byte)
}

struct Identifier {
    config: Config,
    context: tiny::Context,
    model: tiny::Model,
}

impl Identifier {
    fn open(folder: &Path) -> Result<Identifier> {
        let config = Config::read(&folder.join("config.min.json"))?;
        let context = tiny::Context::new()?;
        let path = folder.join("model.onnx");
        let model = tiny::Model::load(&context, path.to_str().ok_or("a path that is no text")?)?;
        Ok(Identifier { config, context, model })
    }

    /// The first bytes after leading white space, the last before trailing one, padded.
    fn features(&self, head: &[u8], tail: &[u8]) -> Vec<i32> {
        let config = &self.config;
        let first = head.iter().position(|byte| !is_space(byte)).unwrap_or(head.len());
        let last = tail.iter().rposition(|byte| !is_space(byte)).map_or(0, |at| at + 1);
        let width = config.beg_size + config.end_size;
        let mut features = vec![config.padding; width];
        for (out, byte) in features[..config.beg_size].iter_mut().zip(&head[first..]) {
            *out = i32::from(*byte);
        }
        for (out, byte) in features[config.beg_size..].iter_mut().rev().zip(tail[..last].iter().rev()) {
            *out = i32::from(*byte);
        }
        features
    }

    fn ask_network(&self, features: &[i32]) -> Result<&str> {
        let input = tiny::Tensor::of(&self.context, features, &[1, features.len() as i64])?;
        let scores = self.model.run(&[&input], 1)?[0].to_vec::<f32>()?;
        let mut best = 0;
        for (index, score) in scores.iter().enumerate() {
            if *score > scores[best] {
                best = index;
            }
        }
        let label = self.config.labels.get(best).ok_or("the output does not fit the labels")?;
        let output = self.config.output(label);
        if f64::from(scores[best]) >= self.config.threshold(label)? {
            return Ok(output);
        }
        let is_text = TEXT_LABELS.split_whitespace().any(|text| text == output);
        Ok(if is_text { "txt" } else { "unknown" })
    }

    fn label_of_content(&self, file: &mut File) -> Result<&str> {
        let size = file.seek(SeekFrom::End(0))?;
        if size == 0 {
            return Ok("empty");
        }
        let block = size.min(self.config.block_size as u64);
        let (mut head, mut tail) = (vec![0; block as usize], vec![0; block as usize]);
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut head)?;
        file.seek(SeekFrom::Start(size - block))?;
        file.read_exact(&mut tail)?;
        let features = self.features(&head, &tail);
        // Too little for the network: fewer bytes than it wants, or nothing but white space.
        let min_size = self.config.min_size;
        if size < min_size as u64 || features[min_size - 1] == self.config.padding {
            return Ok(if std::str::from_utf8(&head).is_ok() { "txt" } else { "unknown" });
        }
        self.ask_network(&features)
    }

    /// The label of what is at `path`, links followed.
    fn label(&self, path: &Path) -> Result<&str> {
        let error_label = |error: io::Error| match error.kind() {
            ErrorKind::PermissionDenied => "permission_error",
            _ => "file_not_found_error",
        };
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) => return Ok(error_label(error)),
        };
        if found.is_dir() {
            return Ok("directory");
        }
        if !found.is_file() {
            return Ok("unknown");
        }
        match File::open(path) {
            Ok(mut file) => self.label_of_content(&mut file),
            Err(error) => Ok(error_label(error)),
        }
    }
}

fn identify_all(arguments: &[std::ffi::OsString]) -> Result<()> {
    let identifier = Identifier::open(Path::new(&arguments[0]))?;
    for path in &arguments[1..] {
        let path = Path::new(path);
        println!("{}: {}", path.display(), identifier.label(path)?);
    }
    Ok(())
}

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.len() < 2 {
        eprintln!("usage: identify MODEL_DIR FILE...");
        std::process::exit(2);
    }
    if let Err(error) = identify_all(&arguments) {
        eprintln!("identify: {error}");
        std::process::exit(1);
    }
}
