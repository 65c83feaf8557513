package dataset

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif"  // decoder
	_ "image/jpeg" // decoder
	_ "image/png"  // decoder
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// maxSide bounds the height and width of one image of a folder.
const maxSide = 4096

// picture is one image file and its class.
type picture struct {
	file  string
	label uint8
}

// readTree reads folders of images, one sub-folder per class: train/CLASS and test/CLASS, or CLASS alone, of which a
// part is then held out to test with.
func readTree(ctx context.Context, files fs.FS, options Options, memory *budget) (*Dataset, error) {
	data := &Dataset{}
	train, test := ".", ""
	if info, err := fs.Stat(files, "train"); err == nil && info.IsDir() {
		info, err := fs.Stat(files, "test")
		if err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%w: a folder train without a folder test beside it", ErrMissing)
		}
		train, test = "train", "test"
	}
	trainPictures, err := data.listClasses(files, train, true)
	if err != nil {
		return nil, err
	}
	var testPictures []picture
	if test != "" {
		if testPictures, err = data.listClasses(files, test, false); err != nil {
			return nil, err
		}
	}
	shape, err := surveyPictures(ctx, files, append(trainPictures[:len(trainPictures):len(trainPictures)], testPictures...))
	if err != nil {
		return nil, err
	}
	if data.Train, err = readPictures(ctx, files, trainPictures, shape, memory); err != nil {
		return nil, err
	}
	if test == "" {
		return data, data.holdOut(options.Holdout, memory)
	}
	data.Test, err = readPictures(ctx, files, testPictures, shape, memory)
	return data, err
}

// listClasses lists the images below a folder. The sub-folders of the training folder become the classes; those of the
// test folder must be among them.
func (d *Dataset) listClasses(files fs.FS, folder string, define bool) ([]picture, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, openError(folder, err)
	}
	known := map[string]int{}
	for i, class := range d.Classes {
		known[class] = i
	}
	var pictures []picture
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || !isFolder(files, name, entry) {
			continue
		}
		if !utf8.ValidString(entry.Name()) {
			return nil, fmt.Errorf("%w: folder %q, expected the name of a class", ErrEncoding, name)
		}
		if define {
			if len(d.Classes) == maxClasses {
				return nil, fmt.Errorf("%w: more than %d class folders", ErrTooLarge, maxClasses)
			}
			known[entry.Name()] = len(d.Classes)
			d.Classes = append(d.Classes, entry.Name())
		}
		label, ok := known[entry.Name()]
		if !ok {
			return nil, fmt.Errorf("%w: folder %s is not among the %d classes of the training folder",
				ErrLabel, name, len(d.Classes))
		}
		found, err := d.listPictures(files, name, uint8(label))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && define {
			return nil, fmt.Errorf("%w: folder %s has no PNG, JPEG or GIF file", ErrEmptyClass, name)
		}
		pictures = append(pictures, found...)
	}
	return pictures, nil
}

// listPictures lists the image files of one class folder in name order.
func (d *Dataset) listPictures(files fs.FS, folder string, label uint8) ([]picture, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, openError(folder, err)
	}
	var pictures []picture
	var left []string
	for _, entry := range entries {
		switch strings.ToLower(path.Ext(entry.Name())) {
		case ".png", ".jpg", ".jpeg", ".gif":
			pictures = append(pictures, picture{path.Join(folder, entry.Name()), label})
		default:
			if !strings.HasPrefix(entry.Name(), ".") {
				left = append(left, entry.Name())
			}
		}
	}
	if len(left) > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s: %d entries that are not .png, .jpg, .jpeg or .gif were left out, "+
			"the first of them %q", folder, len(left), left[0]))
	}
	return pictures, nil
}

// surveyPictures reads the headers of all images: they must be of one size. Images are grey if all of them are.
func surveyPictures(ctx context.Context, files fs.FS, pictures []picture) (Shape, error) {
	shape := Shape{Channels: 1}
	for i, picture := range pictures {
		if err := ctx.Err(); err != nil {
			return shape, err
		}
		config, err := readConfig(files, picture.file)
		if err != nil {
			return shape, err
		}
		if config.Width < 1 || config.Height < 1 || config.Width > maxSide || config.Height > maxSide {
			return shape, fmt.Errorf("%w: %s is %d×%d pixels, expected 1 to %d each way",
				ErrShape, picture.file, config.Width, config.Height, maxSide)
		}
		if i == 0 {
			shape.Width, shape.Height = config.Width, config.Height
		}
		if config.Width != shape.Width || config.Height != shape.Height {
			return shape, fmt.Errorf("%w: %s is %d×%d pixels, expected %d×%d as in %s", ErrShape, picture.file,
				config.Width, config.Height, shape.Width, shape.Height, pictures[0].file)
		}
		if !isGrey(config.ColorModel) {
			shape.Channels = 3
		}
	}
	return shape, nil
}

func readConfig(files fs.FS, file string) (image.Config, error) {
	in, err := openInput(files, file)
	if err != nil {
		return image.Config{}, err
	}
	defer in.Close()
	config, _, err := image.DecodeConfig(in)
	if err != nil {
		return config, damaged(file, err, "not a PNG, JPEG or GIF image")
	}
	return config, nil
}

// isGrey reports whether a colour model has shades of grey only.
func isGrey(model color.Model) bool {
	if palette, ok := model.(color.Palette); ok {
		for _, entry := range palette {
			if r, g, b, _ := entry.RGBA(); r != g || g != b {
				return false
			}
		}
		return true
	}
	return model == color.GrayModel || model == color.Gray16Model
}

// readPictures decodes images, whose headers surveyPictures has checked.
func readPictures(ctx context.Context, files fs.FS, pictures []picture, shape Shape, memory *budget) (Images, error) {
	if err := memory.take(int64(len(pictures))*int64(shape.Size()+1), "the images"); err != nil {
		return Images{}, err
	}
	images := newImages(shape, len(pictures))
	canvas := image.NewRGBA(image.Rect(0, 0, shape.Width, shape.Height))
	for i, picture := range pictures {
		if err := ctx.Err(); err != nil {
			return images, err
		}
		decoded, err := decodePicture(files, picture.file)
		if err != nil {
			return images, err
		}
		if bounds := decoded.Bounds(); bounds.Dx() != shape.Width || bounds.Dy() != shape.Height {
			return images, fmt.Errorf("%w: %s decodes to %d×%d pixels, expected %d×%d", ErrShape, picture.file,
				bounds.Dx(), bounds.Dy(), shape.Width, shape.Height)
		}
		// Transparent pixels are shown on black: Src keeps the colours as weighted by alpha.
		draw.Draw(canvas, canvas.Bounds(), decoded, decoded.Bounds().Min, draw.Src)
		planar(images.Image(i), canvas.Pix, shape)
		images.Labels[i] = picture.label
	}
	return images, nil
}

func decodePicture(files fs.FS, file string) (image.Image, error) {
	in, err := openInput(files, file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	decoded, _, err := image.Decode(in)
	if err != nil {
		return nil, damaged(file, err, "cannot be decoded")
	}
	return decoded, nil
}

// planar spreads RGBA pixels over the channels of a shape; grey images have three equal colours and keep the first.
func planar(to, rgba []byte, shape Shape) {
	area := shape.Height * shape.Width
	for c := range shape.Channels {
		plane := to[c*area : (c+1)*area]
		for i := range plane {
			plane[i] = rgba[4*i+c]
		}
	}
}
