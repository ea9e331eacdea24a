// Names the type of files with Magika's network.
//
//   identify.exe MODEL_DIR FILE...
//
// MODEL_DIR holds model.onnx and config.min.json, as the Python package `magika` ships them.  Prints
// one line `PATH: LABEL` per file, the label of the package's default mode.  Exit status: 0 done, 1
// the model or its configuration cannot be used, 2 wrong usage.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Text;
using Tiny;

/// <summary>The values of config.min.json by their path ("thresholds.crt"), and the labels.</summary>
sealed class Config {
  public readonly int BegSize, EndSize, BlockSize, MinSize, Padding;
  public readonly List<string> Labels = new List<string>();
  readonly Dictionary<string, string> values = new Dictionary<string, string>();
  readonly string text;
  int at;

  public Config(string text) {
    this.text = text;
    Read("");
    BegSize = Size("beg_size");
    EndSize = Size("end_size");
    BlockSize = Size("block_size");
    MinSize = Size("min_file_size_for_dl");
    Padding = Size("padding_token");
    if (Size("mid_size") != 0 || MinSize == 0 || BegSize < MinSize || BlockSize < BegSize ||
        BlockSize < EndSize || Labels.Count == 0)
      throw new FormatException("features that this program does not make");
  }

  public double Threshold(string label) {
    string own;
    if (!values.TryGetValue("thresholds." + label, out own))
      own = values["medium_confidence_threshold"];
    return double.Parse(own, CultureInfo.InvariantCulture);
  }

  public string Output(string label) {
    string other;
    return values.TryGetValue("overwrite_map." + label, out other) ? other : label;
  }

  int Size(string path) { return int.Parse(values[path], CultureInfo.InvariantCulture); }

  char Next() {
    while (at < text.Length && " \t\r\n,:".IndexOf(text[at]) >= 0) ++at;
    if (at == text.Length) throw new FormatException("the configuration ends too early");
    return text[at];
  }

  string Word() {
    var word = new StringBuilder();
    if (Next() == '"') {
      for (++at; at < text.Length && text[at] != '"'; ++at) {
        if (text[at] == '\\') ++at;
        if (at < text.Length) word.Append(text[at]);
      }
      ++at;
    } else {
      while (at < text.Length && " \t\r\n,:]}".IndexOf(text[at]) < 0) word.Append(text[at++]);
    }
    return word.ToString();
  }

  // One value; objects two deep are all there are.
  void Read(string path) {
    char first = Next();
    if (first == '[') {
      for (++at; Next() != ']';) Labels.Add(Word());
      ++at;
    } else if (first == '{' && path.IndexOf('.') < 0) {
      for (++at; Next() != '}';) {
        string key = Word();
        Read(path == "" ? key : path + "." + key);
      }
      ++at;
    } else {
      values[path] = Word();
    }
  }
}

static class Program {
  // The labels that mean text: what is left of them when the network is not sure is "txt".
  static readonly HashSet<string> TextLabels = new HashSet<string>((
    "aidl appleplist asm asp autohotkey autoit awk batch bazel bib c clojure cmake cobol" +
    " coffeescript cpp cs csproj css csv dart diff dm dockerfile dxf elixir eml erb erlang fortran" +
    " gemfile gemspec gitattributes gitmodules go gradle groovy handlebars haskell hcl htaccess" +
    " html ics ignorefile ini internetshortcut ipynb java javascript jinja json jsonl julia kotlin" +
    " latex lisp lua m3u m4 makefile markdown matlab mht mum objectivec ocaml pascal pem perl php" +
    " po powershell prolog proteindb proto python r randomtxt rdf rst rtf ruby rust scala scss" +
    " sgml shell smali solidity sql srt stltext sum svg swift tcl textproto toml tsv twig txt" +
    " typescript vba vcxproj verilog vhdl vtt vue winregistry xml yaml yara zig").Split(' '));

  static Config config;
  static Model model;

  static bool IsSpace(byte value) { return value == ' ' || (value >= '\t' && value <= '\r'); }

  static string LabelOfFew(byte[] content) {
    try {
      new UTF8Encoding(false, true).GetCharCount(content);
      return "txt";
    } catch (ArgumentException) {  // what the strict decoder throws
      return "unknown";
    }
  }

  /// <summary>The first bytes after leading white space, the last before trailing one, padded.
  /// </summary>
  static int[] Features(byte[] head, byte[] tail) {
    int first = 0, last = tail.Length;
    while (first < head.Length && IsSpace(head[first])) ++first;
    while (last > 0 && IsSpace(tail[last - 1])) --last;
    var features = new int[config.BegSize + config.EndSize];
    for (int i = 0; i < config.BegSize; ++i)
      features[i] = first + i < head.Length ? head[first + i] : config.Padding;
    for (int back = 1; back <= config.EndSize; ++back)
      features[features.Length - back] = back <= last ? tail[last - back] : config.Padding;
    return features;
  }

  static string AskNetwork(int[] features) {
    float[] scores;
    using (Tensor input = Tensor.Of(model.Context, features, 1, features.Length)) {
      Tensor output = model.Run(new[] {input}, 1)[0];
      using (output) scores = output.ToArray<float>();
    }
    int best = 0;
    for (int i = 1; i < scores.Length; ++i)
      if (scores[i] > scores[best]) best = i;
    string label = config.Labels[best], name = config.Output(label);
    if (scores[best] >= config.Threshold(label)) return name;
    return TextLabels.Contains(name) ? "txt" : "unknown";
  }

  static byte[] ReadAt(FileStream file, long offset, int count) {
    var bytes = new byte[count];
    file.Seek(offset, SeekOrigin.Begin);
    for (int got, done = 0; done < count; done += got)
      if ((got = file.Read(bytes, done, count - done)) == 0) throw new EndOfStreamException();
    return bytes;
  }

  static string LabelOfContent(FileStream file) {
    long size = file.Length;
    if (size == 0) return "empty";
    int block = (int)Math.Min(size, config.BlockSize);
    byte[] head = ReadAt(file, 0, block);
    if (size < config.MinSize) return LabelOfFew(head);
    int[] features = Features(head, ReadAt(file, size - block, block));
    // Too little but white space is too little as well.
    if (features[config.MinSize - 1] == config.Padding) return LabelOfFew(head);
    return AskNetwork(features);
  }

  /// <summary>The label of what is at the path, links followed.</summary>
  static string Label(string path) {
    if (Directory.Exists(path)) return "directory";
    if (!File.Exists(path)) return "file_not_found_error";
    try {
      using (var file = new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite)) {
        if (!file.CanSeek) return "unknown";  // a pipe or a device
        return LabelOfContent(file);
      }
    } catch (UnauthorizedAccessException) {
      return "permission_error";
    } catch (FileNotFoundException) {  // a link to nothing
      return "file_not_found_error";
    }
  }

  static int Main(string[] arguments) {
    if (arguments.Length < 2) {
      Console.Error.WriteLine("usage: identify.exe MODEL_DIR FILE...");
      return 2;
    }
    try {
      config = new Config(File.ReadAllText(Path.Combine(arguments[0], "config.min.json")));
      using (var context = new Context())
      using (model = Model.Load(context, Path.Combine(arguments[0], "model.onnx"))) {
        for (int i = 1; i < arguments.Length; ++i)
          Console.WriteLine("{0}: {1}", arguments[i], Label(arguments[i]));
      }
    } catch (Exception error) {
      if (!(error is TinyException || error is IOException || error is FormatException ||
            error is KeyNotFoundException))
        throw;
      Console.Error.WriteLine("identify: {0}", error.Message);
      return 1;
    }
    return 0;
  }
}
