import CallCore
internal import Glibc

/// The UUID that an account of this user and machine is known by at its server, in a file: made once, and kept.
///
/// Runs of one account at the same time have one each: the first the file of the account, those beside it `.2` and on.
final class InstanceFile: Sendable {
    /// More runs at once have none that is kept.
    private static let limit = 64

    let uuid: CallUUID
    /// Locked while the process runs; the kernel unlocks it.
    private let descriptor: CInt

    private init(_ uuid: CallUUID, _ descriptor: CInt) { (self.uuid, self.descriptor) = (uuid, descriptor) }

    deinit { close(descriptor) }

    /// The first one of an address that no other process has; nil where nothing can be kept.
    static func take(for address: String) -> InstanceFile? {
        guard let folder = folder() else { return nil }
        let plain = address.map { $0.isASCII && ($0.isLetter || $0.isNumber || ".@:-".contains($0)) ? $0 : "_" }
        for number in 1...limit {
            let name = "instance-" + String(plain.prefix(200)) + (number == 1 ? "" : ".\(number)")
            let descriptor = open("\(folder)/\(name)", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { return nil }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0, let uuid = readOrMake(descriptor) {
                return InstanceFile(uuid, descriptor)
            }
            close(descriptor)
        }
        return nil
    }

    private static func readOrMake(_ descriptor: CInt) -> CallUUID? {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        if count >= 36, let uuid = CallUUID(String(decoding: bytes[..<36], as: UTF8.self)) { return uuid }
        let made = CallUUID()
        let text = Array("\(made)\n".utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, text, text.count, 0) == text.count else { return nil }
        return made
    }

    /// Where programs keep what they know between runs (XDG Base Directory Specification); made when it is missing.
    private static func folder() -> String? {
        let variables = ProcessEnvironment.variables
        var base = variables["XDG_STATE_HOME"] ?? ""
        if !base.hasPrefix("/") {
            guard let home = variables["HOME"], home.hasPrefix("/") else { return nil }
            base = "\(home)/.local/state"
        }
        let folder = "\(base)/media-tool"
        var path = ""
        for part in folder.split(separator: "/") {
            path += "/\(part)"
            mkdir(path, 0o700)
        }
        return access(folder, W_OK) == 0 ? folder : nil
    }
}
