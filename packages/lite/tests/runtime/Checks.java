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

/** {@code Checks LENET.ms}: what the classes of Java do, errors above all; exits with 1 at the first that is wrong. */
public class Checks {
  static void check(boolean fine, String what) {
    if (fine) return;
    System.err.println("wrong: " + what + "; the last error is: " + Model.lastError());
    System.exit(1);
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

    RunnerConfig config = new RunnerConfig();
    config.init(context);
    config.setWorkersNum(2);
    ModelParallelRunner runner = new ModelParallelRunner();
    check(runner.init(arguments[0], config), "runner");
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
