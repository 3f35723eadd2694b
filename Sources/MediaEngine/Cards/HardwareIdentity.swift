import Glibc

/// What Linux knows of a hardware sound card without opening it, from /sys and /proc.
struct HardwareIdentity: Hashable, Sendable {
    /// "usb-VENDOR:PRODUCT-SERIAL", or the place on the bus: "pci-0000:00:1b.0", "usb-1-2", "platform-soc_sound".
    let stable: String
    /// Where the card is plugged in.
    let place: String

    /// The identity of card number `index` below the directory `sysfs`.
    init(card index: Int, sysfs: String = "/sys") {
        let device = "\(sysfs)/class/sound/card\(index)/device"
        let path = SystemFile.realPath(device) ?? ""
        let parts = path.split(separator: "/").map(String.init)
        let last = parts.last ?? "card\(index)"
        // The sound function of a USB device is a directory "1-2:1.0" inside the device's own, "1-2".
        if let colon = last.firstIndex(of: ":"), SystemFile.read("\(path)/../idVendor") != nil {
            place = "usb-\(last[..<colon])"
            let vendor = SystemFile.read("\(path)/../idVendor") ?? ""
            let product = SystemFile.read("\(path)/../idProduct") ?? ""
            if let serial = SystemFile.read("\(path)/../serial"), !serial.isEmpty {
                stable = "usb-\(vendor):\(product)-\(serial.map { $0 == " " ? "_" : String($0) }.joined())"
            } else {
                stable = place
            }
            return
        }
        let bus = SystemFile.realPath("\(path)/subsystem").flatMap { $0.split(separator: "/").last } ?? "card"
        place = "\(bus)-\(last)"
        stable = place
    }

    /// Identities of several cards: cards with the same serial number are told apart by their places.
    static func distinct(_ identities: [HardwareIdentity]) -> [String] {
        identities.map { identity in
            let isTwin = identities.filter { $0.stable == identity.stable }.count > 1
            return isTwin && identity.stable != identity.place
                ? "\(identity.stable)@\(identity.place)" : identity.stable
        }
    }
}

/// Small files and directories of /sys and /proc.
enum SystemFile {
    /// The first line of a small file, without blanks at its ends; nil when it cannot be read.
    static func read(_ path: String) -> String? {
        guard let text = readAll(path) else { return nil }
        let line = text.prefix { $0 != "\n" }
        return String(line.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\r" }.reversed())
    }

    /// A file of at most 64 KiB; nil when it cannot be read.
    static func readAll(_ path: String) -> String? {
        guard let file = try? POSIXFile(reading: path) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 65536)
        guard let count = try? bytes.withUnsafeMutableBytes({ try file.read(into: $0) }) else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// The path without symbolic links; nil when it does not exist.
    static func realPath(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The names in a directory, sorted; none when it cannot be read.
    static func names(in path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
