import com.mycelia.MSTensor;
import com.mycelia.Model;
import com.mycelia.config.DeviceType;
import com.mycelia.config.MSContext;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Collections;

/** Classifies one picture with a .ms model: {@code Classify MODEL.ms PICTURE.f32}; prints the class and its score. */
public class Classify {
  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: Classify MODEL.ms PICTURE.f32");
      System.exit(2);
    }
    MSContext context = new MSContext();
    context.init(2, 0);
    context.addDeviceInfo(DeviceType.DT_CPU, false);
    Model model = new Model();
    if (!model.build(arguments[0], Model.MINDIR_LITE, context)) throw new IllegalStateException(Model.lastError());
    context.free(); // not needed any more
    MSTensor input = model.getInputs().get(0);
    int[] shape = input.getShape();
    boolean open = false;
    for (int i = 0; i < shape.length; ++i) {
      open |= shape[i] < 0;
      shape[i] = Math.max(shape[i], 1);
    }
    if (open && !model.resize(Collections.singletonList(input), new int[][] {shape})) throw new IllegalStateException(Model.lastError());
    ByteBuffer picture = ByteBuffer.wrap(Files.readAllBytes(Paths.get(arguments[1]))).order(ByteOrder.LITTLE_ENDIAN);
    float[] pixels = new float[picture.remaining() / 4];
    picture.asFloatBuffer().get(pixels);
    if (!input.setData(pixels) || !model.predict()) throw new IllegalStateException(Model.lastError());
    float[] scores = model.getOutputs().get(0).getFloatData();
    int best = 0;
    for (int i = 1; i < scores.length; ++i) if (scores[i] > scores[best]) best = i;
    System.out.println(String.format(java.util.Locale.ROOT, "%d %.6f", best, scores[best]));
    model.free();
  }
}
