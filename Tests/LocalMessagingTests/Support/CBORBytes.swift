import NIOCore

extension ByteBuffer {
    /// Bytes as hexadecimal digits, spaces left out.
    init(cbor text: String) {
        let digits = text.compactMap(\.hexDigitValue)
        self.init(bytes: stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }

    /// The bytes as hexadecimal digits.
    var hex: String {
        let digits = Array("0123456789abcdef")
        return String(readableBytesView.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}
