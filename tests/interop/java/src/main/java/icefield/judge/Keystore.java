package icefield.judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.encryption.KeyManagementClient;

/** The local keystore of Icefield; Java's catalogs make it by its name, with the property "keystore". */
public final class Keystore implements KeyManagementClient {
  static final String PATH = "keystore";

  private JsonNode keys;

  @Override
  public void initialize(Map<String, String> properties) {
    try {
      keys = new ObjectMapper().readTree(new File(properties.get(PATH))).get("keys");
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String id) {
    String version = keys.get(id).get("current").textValue();
    byte[] name = version.getBytes(StandardCharsets.UTF_8);
    byte[] nonce = new byte[12];
    new SecureRandom().nextBytes(nonce);
    byte[] sealed = run(Cipher.ENCRYPT_MODE, id, version, nonce, Encryption.bytes(key));
    return ByteBuffer.allocate(1 + name.length + 12 + sealed.length)
        .put((byte) name.length).put(name).put(nonce).put(sealed).flip();
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrapped, String id) {
    ByteBuffer left = wrapped.duplicate();
    byte[] name = new byte[left.get()];
    left.get(name);
    byte[] nonce = new byte[12];
    left.get(nonce);
    String version = new String(name, StandardCharsets.UTF_8);
    return ByteBuffer.wrap(run(Cipher.DECRYPT_MODE, id, version, nonce, Encryption.bytes(left)));
  }

  private byte[] run(int mode, String id, String version, byte[] nonce, byte[] data) {
    try {
      byte[] master = Base64.getDecoder().decode(keys.get(id).get("versions").get(version).textValue());
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(mode, new SecretKeySpec(master, "AES"), new GCMParameterSpec(128, nonce));
      cipher.updateAAD(id.getBytes(StandardCharsets.UTF_8));
      return cipher.doFinal(data);
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
