import com.mycelia.Graph;
import com.mycelia.KernelCallBack;
import com.mycelia.MSTensor;
import com.mycelia.Model;
import com.mycelia.ModelParallelRunner;
import com.mycelia.config.CpuBindMode;
import com.mycelia.config.DeviceType;
import com.mycelia.config.MSContext;
import com.mycelia.config.RunnerConfig;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** {@code Checks LENET.ms ENCRYPTED.ms}: what the classes of Java do, errors above all; exits with 1 at the first that is wrong. */
public class Checks {
  static void check(boolean fine, String what) {
    if (fine) return;
    System.err.println("wrong: " + what + "; the last error is: " + Model.lastError());
    System.exit(1);
  }

  static void callBacks(Model model, float[] scores) {
    List<String> names = new ArrayList<>();
    List<MSTensor> kept = new ArrayList<>();
    boolean[] fine = {true};
    KernelCallBack before = (inputs, outputs, name, type) -> {
      names.add("before " + name);
      fine[0] &= outputs.get(0).getByteData() == null && inputs.get(0).getByteData() != null;
      return true;
    };
    KernelCallBack after = (inputs, outputs, name, type) -> {
      fine[0] &= names.get(names.size() - 1).equals("before " + name) && !type.isEmpty();
      names.add("after " + name);
      fine[0] &= outputs.get(0).getFloatData() != null && outputs.get(0).size() == 4L * outputs.get(0).elementsNum();
      kept.add(outputs.get(0));
      return true;
    };
    check(model.predict(before, after) && fine[0], "calls around nodes");
    check(names.size() > 8 && names.size() == 2 * kept.size(), "a call before and after each node");
    check(kept.get(0).getByteData() == null, "tensors hold for the call");
    check(Arrays.equals(model.getOutputs().get(0).getFloatData(), scores), "scores of a run that is watched");
    check(model.predict(null, after) && model.predict(before, null), "one of them");
    check(!model.predict((inputs, outputs, name, type) -> false, null), "a run that is ended");
    check(Model.lastError().contains("ended the run"), "its reason");
    check(model.getOutputs().get(0).getFloatData() == null, "outputs of a run that was ended");
    int[] calls = {0};
    try {
      model.predict(null, (inputs, outputs, name, type) -> {
        if (++calls[0] == 2) throw new IllegalArgumentException("second node");
        return true;
      });
      check(false, "what a call throws");
    } catch (IllegalArgumentException error) {
      check(error.getMessage().equals("second node") && calls[0] == 2, "what was thrown");
    }
    String[] reason = {""};
    model.predict((inputs, outputs, name, type) -> {
      fine[0] = !model.predict();
      reason[0] = Model.lastError();
      return false;
    }, null);
    check(fine[0] && reason[0].contains("running"), "a run inside of a run");
    check(model.predict() && Arrays.equals(model.getOutputs().get(0).getFloatData(), scores), "a run after all of that");
  }

  static void graphs(String path, float[] pixels, float[] scores) {
    Graph graph = new Graph();
    check(!graph.load("/no/such.ms") && graph.load(path), "graph");
    Model model = new Model();
    check(model.build(graph, null), "build of a graph");
    graph.free();
    run(model, pixels, scores);
  }

  static void encrypted(String path, float[] pixels, float[] scores) throws Exception {
    byte[] key = "0123456789abcdef".getBytes("US-ASCII");
    Model model = new Model();
    check(!model.build(path, Model.MINDIR_LITE, null, new byte[16], "AES-GCM"), "a wrong key");
    check(!model.build(path, Model.MINDIR_LITE, null, new byte[3], "AES-GCM") && Model.lastError().contains("3"), "a short key");
    check(model.build(path, Model.MINDIR_LITE, null, key, "AES-GCM"), "encrypted file");
    run(model, pixels, scores);
    try (RandomAccessFile file = new RandomAccessFile(path, "r")) {
      MappedByteBuffer data = file.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, file.length());
      Model mapped = new Model();
      check(!mapped.build(data, Model.MINDIR_LITE, null), "an encrypted buffer without a key");
      check(mapped.build(data, Model.MINDIR_LITE, null, key, "AES-GCM"), "encrypted buffer");
      run(mapped, pixels, scores);
    }
  }

  static void run(Model model, float[] pixels, float[] scores) {
    check(model.resize(model.getInputs(), new int[][] {{2, 1, 32, 32}}), "resize");
    check(model.getInputs().get(0).setData(pixels) && model.predict(), "run");
    check(Arrays.equals(model.getOutputs().get(0).getFloatData(), scores), "scores");
    model.free();
  }

  public static void main(String[] arguments) throws Exception {
    MSContext context = new MSContext();
    check(!context.init(0, CpuBindMode.NO_BIND), "no threads");
    check(Model.lastError().contains("thread_num must be at least 1"), "its reason");
    check(context.init(2, CpuBindMode.NO_BIND) && context.addDeviceInfo(DeviceType.DT_CPU, false), "context");
    check(!context.addDeviceInfo(DeviceType.DT_GPU, false), "no GPU");
    Model model = new Model();
    check(!model.build("/no/such.ms", Model.MINDIR_LITE, context), "missing file");
    check(Model.lastError().contains("cannot open '/no/such.ms'"), "its reason");
    check(!model.predict() && model.getInputs().isEmpty(), "not built");
    check(model.build(arguments[0], Model.MINDIR_LITE, context), "build");
    List<MSTensor> inputs = model.getInputs();
    MSTensor input = inputs.get(0);
    check(Arrays.equals(input.getShape(), new int[] {-1, 1, 32, 32}) && input.elementsNum() == -1, "open size");
    check(!model.resize(inputs, new int[][] {{1, 2, 32, 32}}), "channels");
    check(model.resize(inputs, new int[][] {{2, 1, 32, 32}}), "resize");
    float[] pixels = new float[2 * 32 * 32];
    for (int i = 0; i < pixels.length; ++i) pixels[i] = i % 7 / 7f;
    check(!input.setData(new float[3]) && input.setData(pixels), "data of the right size alone");
    MSTensor output = model.getOutputs().get(0);
    check(output.getFloatData() == null, "an output before the run");
    check(model.predict(), "predict");
    float[] scores = output.getFloatData();
    check(scores.length == 20 && scores[3] != 0, "scores");
    check(model.getOutputByTensorName(model.getOutputTensorNames().get(0)) != null, "output by name");
    check(model.getInputsByTensorName("nobody") == null, "input by a wrong name");
    check(model.getOutputsByNodeName("nobody").isEmpty(), "wrong node");

    try (RandomAccessFile file = new RandomAccessFile(arguments[0], "r")) {
      MappedByteBuffer data = file.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, file.length());
      Model mapped = new Model();
      check(mapped.build(data, Model.MINDIR_LITE, null), "build of a buffer");
      check(mapped.resize(mapped.getInputs(), new int[][] {{2, 1, 32, 32}}), "its resize");
      check(mapped.getInputs().get(0).setData(pixels) && mapped.predict(), "its run");
      check(Arrays.equals(mapped.getOutputs().get(0).getFloatData(), scores), "its scores");
      mapped.free();
    }

    callBacks(model, scores);
    graphs(arguments[0], pixels, scores);
    encrypted(arguments[1], pixels, scores);
    check(model.getModelInfo("precision").equals("float32") && model.getModelInfo("nothing") == null, "facts");
    Model set = new Model();
    check(!set.updateConfig("nothing", "a", "b") && Model.lastError().contains("nothing"), "a wrong section");
    set.free();

    RunnerConfig config = new RunnerConfig();
    config.init(context);
    config.setConfigInfo("execution_plan", Collections.singletonMap("nobody", "data_type:float16"));
    ModelParallelRunner wrong = new ModelParallelRunner();
    check(!wrong.init(arguments[0], config) && Model.lastError().contains("'nobody'"), "a node that is not there");
    wrong.free();
    config.setConfigInfo("execution_plan", Collections.emptyMap());
    config.setWorkersNum(2);
    ModelParallelRunner runner = new ModelParallelRunner();
    check(runner.init(arguments[0], config), "runner");
    check(Arrays.equals(runner.getOutputs().get(0).getShape(), new int[] {-1, 10}), "what a runner makes");
    MSTensor given = MSTensor.createTensor("x", 43, new int[] {2, 1, 32, 32}, null);
    check(given != null && given.setData(pixels), "tensor by hand");
    check(MSTensor.createTensor("x", 43, new int[] {-1}, null) == null, "negative size");
    List<Thread> clients = new ArrayList<>();
    boolean[] fine = new boolean[4];
    for (int c = 0; c < fine.length; ++c) {
      final int client = c;
      clients.add(new Thread(() -> {
        List<MSTensor> made = new ArrayList<>();
        fine[client] = runner.predict(Collections.singletonList(given), made) && Arrays.equals(made.get(0).getFloatData(), scores);
        for (MSTensor tensor : made) tensor.free();
      }));
    }
    for (Thread client : clients) client.start();
    for (Thread client : clients) client.join();
    for (boolean one : fine) check(one, "a client of the runner");
    check(!runner.predict(new ArrayList<>(), new ArrayList<>()), "no inputs");
    runner.free();
    given.free();
    check(!given.setData(pixels), "freed tensor");
    model.free();
    check(output.getFloatData() == null && !model.predict(), "freed model");
    context.free();
    System.out.println("all checks passed");
  }
}
