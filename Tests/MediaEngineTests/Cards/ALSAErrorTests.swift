import Glibc
import Testing

@testable import MediaEngine

@Suite struct ALSAErrorTests {
    @Test(arguments: [
        (EBUSY, CardFault.busy, "in use by another program"),
        (ENOENT, .absent, "Plug the card in"),
        (ENODEV, .absent, "Plug the card in"),
        (EACCES, .forbidden, "group audio"),
        (ECONNREFUSED, .absent, "sound server"),
        (EIO, .deviceFailure, "snd_pcm_open"),
    ])
    func `a return code becomes a message with the PCM, the reason and a remedy`(
        code: Int32,
        expected: CardFault,
        words: String
    ) {
        let error = ALSAError.error(-code, "snd_pcm_open", pcm: "hw:1")
        #expect(error.code == expected)
        #expect(error.message.contains("hw:1") && error.message.contains(words) && error.message.hasSuffix("."))
    }
}
