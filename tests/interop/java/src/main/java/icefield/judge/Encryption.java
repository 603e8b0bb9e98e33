package icefield.judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.encryption.AesGcmInputFile;
import org.apache.iceberg.encryption.AesGcmOutputFile;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/** The bytes of encrypted streams and of key metadata. */
final class Encryption {
  private static final Configuration CONF = new Configuration();
  private static final HexFormat HEX = HexFormat.of();

  private Encryption() {}

  static byte[] bytes(ByteBuffer buffer) {
    byte[] found = new byte[buffer.remaining()];
    buffer.duplicate().get(found);
    return found;
  }

  /** Parses key metadata, and encodes it again with another file length. */
  static void keyMetadata(JsonNode request, ObjectNode made) {
    ByteBuffer given = ByteBuffer.wrap(HEX.parseHex(request.get("data").textValue()));
    made.put("again", HEX.formatHex(bytes(EncryptionUtil.setFileLength(given, request.get("length").longValue()))));
    StandardEncryptionManager manager =
        new StandardEncryptionManager(List.of(), "none", request.get("bytes").intValue(), new Keystore());
    NativeEncryptionKeyMetadata own =
        manager.encrypt(new HadoopFileIO(CONF).newOutputFile("/nowhere")).keyMetadata();
    made.put("own", HEX.formatHex(bytes(own.buffer())));
    made.put("key", HEX.formatHex(bytes(own.encryptionKey())));
    made.put("prefix", HEX.formatHex(bytes(own.aadPrefix())));
  }

  static void encrypt(JsonNode request) throws Exception {
    byte[] data = HEX.parseHex(request.get("data").textValue());
    try (OutputStream stream =
        new AesGcmOutputFile(
                new HadoopFileIO(CONF).newOutputFile(request.get("path").textValue()),
                HEX.parseHex(request.get("key").textValue()),
                HEX.parseHex(request.get("prefix").textValue()))
            .create()) {
      stream.write(data);
    }
  }

  static byte[] decrypt(JsonNode request) throws Exception {
    InputFile file =
        new AesGcmInputFile(
            new HadoopFileIO(CONF).newInputFile(request.get("path").textValue()),
            HEX.parseHex(request.get("key").textValue()),
            HEX.parseHex(request.get("prefix").textValue()),
            request.get("length").longValue());
    try (SeekableInputStream stream = file.newStream()) {
      stream.seek(request.path("from").longValue());
      return stream.readAllBytes();
    }
  }
}
