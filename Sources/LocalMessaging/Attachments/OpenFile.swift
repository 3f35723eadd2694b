import CLinux
import Glibc

/// An open file that goes with a message (unix(7), SCM_RIGHTS); closed when the last reference goes.
///
/// The receiver's descriptor shares offset and status flags with the sender's, as after `dup`.
public final class OpenFile: Sendable {
    /// The descriptor, open as long as this object lives.
    public let descriptor: CInt

    /// Takes `descriptor` over: it is closed with this object.
    public init(owning descriptor: CInt) {
        self.descriptor = descriptor
    }

    /// Opens the file at `path` for reading; a pipe also when nobody writes to it yet.
    ///
    /// - Throws: `MessagingError.attachments` when it cannot be opened.
    public convenience init(readingFrom path: String) throws(MessagingError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        // Who reads waits, as with any other file.
        guard descriptor >= 0, fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK) == 0 else {
            let reason = String(cString: strerror(errno))
            if descriptor >= 0 { close(descriptor) }
            throw .attachments("\(path) cannot be opened: \(reason).")
        }
        self.init(owning: descriptor)
    }

    /// A second descriptor of the same open file, which the caller closes.
    public func duplicate() throws(MessagingError) -> CInt {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else {
            throw .attachments("A descriptor could not be copied: \(String(cString: strerror(errno))).")
        }
        return copy
    }

    deinit {
        close(descriptor)
    }
}
