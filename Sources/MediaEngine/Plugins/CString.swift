import Glibc

/// Text that C code hands over: checked and bounded before it is believed.
enum CString {
    /// A name of letters, digits, "-", "_", "." and "+", at most 32; nil for anything else.
    static func token(_ pointer: UnsafePointer<CChar>?) -> String? {
        guard let text = text(pointer, most: 32), !text.isEmpty else { return nil }
        let isToken = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
            case UInt8(ascii: "0")...UInt8(ascii: "9"): true
            default: "-_.+".utf8.contains(byte)
            }
        }
        return isToken ? text : nil
    }

    /// One line of printable ASCII, at most 500 characters; nil for anything else.
    static func line(_ pointer: UnsafePointer<CChar>?) -> String? {
        guard let text = text(pointer, most: 500), text.utf8.allSatisfy({ (32...126).contains($0) }) else {
            return nil
        }
        return text
    }

    private static func text(_ pointer: UnsafePointer<CChar>?, most: Int) -> String? {
        guard let pointer else { return nil }
        let count = strnlen(pointer, most + 1)
        guard count <= most else { return nil }
        return String(validating: UnsafeRawBufferPointer(start: pointer, count: count), as: UTF8.self)
    }
}
